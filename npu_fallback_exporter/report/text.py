"""A report for a terminal, or as plain lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..pages.notes import printable
from . import units
from .findings import BAD, FINE, WATCH, findings
from .model import GOOD, OFF, DriverSum, OpCost, Report, TransferSum, Worker

_WIDTH_OF_A_FILE = 120
_WIDE = 110
_STYLES = {BAD: "bold red", WATCH: "bold yellow", FINE: "bold green"}
_MOST_OPS = 50
_BAR_WIDTH = 8
EXPLICIT = "explicit_kernel"


def console() -> Console:
    """Return a console for stdout; what is not a terminal gets plain lines of a fixed width."""
    made = Console(highlight=False)
    if not made.is_terminal:
        made.width = _WIDTH_OF_A_FILE
    return made


def show(report: Report, out: Console) -> None:
    """Print all of it."""
    say(out, _headline(report), "bold")
    for line in facts(report):
        say(out, line)
    say(out)
    for number, finding in enumerate(findings(report)):
        style = _STYLES.get(finding.level, "bold") if number == 0 else ""
        say(out, finding.en if number == 0 else f"- {finding.en}", style)
    if report.ops:
        say(out)
        out.print(_ops(report, out))
        _show_calls(report, out)
    _show_rest(report, out)


def say(out: Console, line: str = "", style: str = "") -> None:
    """Print one line as it is; it is not wrapped, so that paths can be copied."""
    out.print(Text(printable(line), style=style), soft_wrap=True)


def table(out: Console, left: Sequence[str], right: Sequence[str]) -> Table:
    """Return an empty table: columns of words, then columns of numbers."""
    made = Table(
        box=None,
        padding=(0, 2 if out.width >= _WIDE else 1, 0, 0),
        pad_edge=False,
        header_style="bold" if out.is_terminal else "",
    )
    for name in left:
        made.add_column(name, overflow="fold", min_width=min(24, len(name)))
    for name in right:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def facts(report: Report) -> Iterable[str]:
    """Yield what the report is about: time, processes, mode, versions."""
    since = "" if report.since_unix is None else f" since {units.moment(report.since_unix)},"
    yield (
        f"{report.processes} live and {report.processes_finished} ended "
        f"{'process' if report.processes + report.processes_finished == 1 else 'processes'},"
        f"{since} armed {units.duration(report.armed_seconds)} in all"
        + ("" if report.operators is None else f", {units.count(report.operators)} operators")
    )
    for mode in report.modes:
        yield f"mode {mode.mode} (from {mode.source})"
    for hook in report.hooks:
        yield (
            f"torch {hook.torch or 'unknown'}, torch_npu {hook.torch_npu or 'unknown'}, "
            f"CANN {hook.cann or 'unknown'}, hook {hook.hook or 'unknown'}, "
            f"track {hook.track}, boundary {hook.boundary}"
        )


def named(worker: Worker) -> str:
    """Return a process in words."""
    pid = "" if worker.pid is None else f"pid {worker.pid}, "
    return f"{pid}since {units.moment(worker.started_unix)}"


def _headline(report: Report) -> str:
    made = units.moment(report.made_unix)
    return f"NPU fallback report of {made}, from {report.origin}"


#: Columns of numbers: name, least width of the terminal, and how to tell it.
_NUMBERS: tuple[tuple[str, int, Callable[[Report, OpCost], str]], ...] = (
    ("events", 0, lambda report, op: units.count(op.events)),
    ("per 1,000", _WIDE, lambda report, op: units.rate(report.per_thousand_operators(op.events))),
    ("host time", 0, lambda report, op: units.duration(op.host_seconds)),
    ("share", 0, lambda report, op: units.share(report.share(op.host_seconds))),
    ("mean", 60, lambda report, op: units.duration(op.mean_seconds)),
    ("to host", 76, lambda report, op: units.size(op.bytes_d2h)),
    ("to device", 76, lambda report, op: units.size(op.bytes_h2d)),
)


def _ops(report: Report, out: Console) -> Table:
    is_wide = out.width >= _WIDE
    numbers = [(name, tell) for name, least, tell in _NUMBERS if out.width >= least]
    names = [name for name, _ in numbers]
    bar_at = names.index("share") + 1 if out.is_terminal and is_wide else None
    if bar_at is not None:
        names.insert(bar_at, "")
    made = table(out, ("operator", "kind") if is_wide else ("operator",), names)
    most = max((op.cost_seconds for op in report.ops), default=0.0)
    for op in report.ops[:_MOST_OPS]:
        cells = [Text(tell(report, op)) for _, tell in numbers]
        if bar_at is not None:
            cells.insert(bar_at, Text(_bar(op.cost_seconds, most), style="red"))
        words = (op.op, op.kind) if is_wide else (op.op,)
        made.add_row(*(Text(printable(word)) for word in words), *cells)
    return made


def _bar(part: float, whole: float) -> str:
    eighths = round(8 * _BAR_WIDTH * part / whole) if whole > 0 else 0
    rest = "" if eighths % 8 == 0 else "▏▎▍▌▋▊▉"[eighths % 8 - 1]
    return f"{'█' * (eighths // 8)}{rest}".ljust(_BAR_WIDTH)


def _show_calls(report: Report, out: Console) -> None:
    left_out = len(report.ops) - _MOST_OPS
    if left_out > 0:
        say(out, f"and {left_out} more: see --format json")
    for op in report.ops[:_MOST_OPS]:
        lines = list(_known_of(op))
        if lines:
            say(out)
            say(out, op.op, "bold")
            for line in lines:
                say(out, f"  {line}")


def _known_of(op: OpCost) -> Iterable[str]:
    if op.kind == EXPLICIT:
        yield "its NPU kernel computes on the host"
    if op.blocked:
        yield f"refused {units.count(op.blocked)} times"
    if op.errors:
        yield f"raised {units.count(op.errors)} times"
    if op.call is not None and op.call.site:
        yield f"first called from {op.call.site}"
    if op.call is not None and op.call.arguments:
        yield f"with {op.call.arguments}"
    if op.remedy is not None:
        yield f"instead: {op.remedy.en}"


def _show_rest(report: Report, out: Console) -> None:
    if report.transfers:
        made = table(out, ("transfers", "cause"), ("copies", "bytes"))
        copies: list[tuple[str, TransferSum | DriverSum]] = [
            *((one.cause, one) for one in report.transfers),
            *(("all, as the driver sees them", one) for one in report.driver),
        ]
        for cause, one in copies:
            words = Text(printable(one.direction)), Text(printable(cause))
            made.add_row(*words, units.count(one.transfers), units.size(one.bytes))
        say(out)
        out.print(made)
    if report.syncs:
        made = table(out, ("waits for a value",), ("times",))
        for op, count in sorted(report.syncs.items(), key=lambda row: (-row[1], row[0])):
            made.add_row(Text(printable(op)), units.count(count))
        say(out)
        out.print(made)
    if report.workers:
        made = table(out, ("server process", "mode", "NPU"), ("events", "host time"))
        for worker in report.workers:
            made.add_row(
                Text(printable(named(worker))),
                Text(printable(worker.mode)),
                Text(printable(", ".join(worker.npus))),
                units.count(worker.events),
                units.duration(worker.host_seconds),
            )
        say(out)
        out.print(made)
    sources = [source for source in report.sources if source.state != GOOD or source.detail]
    if sources:
        say(out)
        for source in sources:
            state = {GOOD: "read", OFF: "off"}.get(source.state, "FAILS")
            say(out, f"{source.name}: {state}{f' {source.detail}' if source.detail else ''}")
