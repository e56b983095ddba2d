"""A report as one file of HTML: no script, nothing fetched, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from ..metrics import hook
from ..pages.notes import printable
from . import svg, units
from .findings import findings
from .model import GOOD, OFF, OpCost, Report
from .text import facts, named

_CSS = Path(__file__).with_name("report.css")
_MOST_OPS = 100
_PLOTTED_OPS = 15
_KEYS = (("npu", "NPU"), ("cpu", "CPU"), ("rate", "Fallbacks"))
#: With this nothing in the file runs or fetches, whatever an operator is called.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, content: Iterable[str]) -> str:
    """Return a whole document; `content` is HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n"
        f"<style>\n{_CSS.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n"
        + "\n".join(content)
        + "\n</body>\n</html>\n"
    )


def rows(head: Sequence[str], words: int, content: Iterable[Sequence[str]]) -> str:
    """Return a table.

    Args:
        head: names of the columns, as text.
        words: so many first columns are words, the others numbers.
        content: cells as HTML.
    """

    def cell(tag: str, number: int, html: str) -> str:
        css = ' class="words"' if number < words else ""
        return f"<{tag}{css}>{html}</{tag}>"

    top = "".join(cell("th", number, _text(name)) for number, name in enumerate(head))
    body = "\n".join(
        f"<tr>{''.join(cell('td', number, html) for number, html in enumerate(row))}</tr>"
        for row in content
    )
    return (
        f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def document(report: Report) -> str:
    """Return the report as HTML."""
    return page(f"NPU fallback report, {units.moment(report.made_unix)}", _content(report))


def _content(report: Report) -> Iterable[str]:
    made = f"{units.moment(report.made_unix)}, from {report.origin}"
    yield f'<h1>NPU fallback report</h1>\n<p class="soft">{_text(made)}</p>'
    verdict, *others = findings(report)
    yield f'<p class="verdict {verdict.level}">{_text(verdict.en)}</p>'
    if others:
        items = "".join(f'<li class="{one.level}">{_text(one.en)}</li>' for one in others)
        yield f"<ul>{items}</ul>"
    yield from (f'<p class="soft">{_text(line)}</p>' for line in facts(report))
    yield from _history(report)
    yield from _ops(report)
    yield from _copies(report)
    yield from _workers(report)
    yield from _sources(report)


def _history(report: Report) -> Iterable[str]:
    history = report.history
    if history is None or not history.unix:
        return
    yield f"<h2>From {units.moment(history.unix[0])} to {units.moment(history.unix[-1])}</h2>"
    busy = [(f"NPU {npu}", "npu", line) for npu, line in history.npu.items()]
    busy.append(("CPUs of the host", "cpu", history.host_cpu))
    npu, cpu, rate = (f'<span class="key {key}">{name}</span>' for key, name in _KEYS)
    yield f"<p>{npu} and {cpu} utilization, 0 to 100%</p>"
    yield svg.lines(busy, 1.0, "NPU and CPU utilization")
    rates = history.events_per_second
    most = max((rate for rate in rates if rate is not None), default=0.0)
    yield f"<p>{rate} per second, up to {units.rate(most)}</p>"
    yield svg.lines([("fallbacks per second", "rate", rates)], most, "fallbacks per second")


def _ops(report: Report) -> Iterable[str]:
    shown = [op for op in report.ops if op.events][:_PLOTTED_OPS]
    if shown:
        yield "<h2>Host time by operator</h2>"
        yield svg.bars(
            [(printable(op.op), op.cost_seconds, units.duration(op.cost_seconds)) for op in shown],
            "host time by operator",
        )
    if report.ops:
        yield "<h2>Operators</h2>"
        yield rows(
            (
                "operator",
                "kind",
                "events",
                "per 1,000 operators",
                "host time",
                "share of time",
                "mean",
                "to host",
                "to device",
            ),
            2,
            (_op_row(report, op) for op in report.ops[:_MOST_OPS]),
        )
    for op in report.ops[:_MOST_OPS]:
        yield from _op_details(op)


def _op_row(report: Report, op: OpCost) -> Sequence[str]:
    return (
        f"<code>{_text(op.op)}</code>",
        _text(op.kind),
        units.count(op.events),
        units.rate(report.per_thousand_operators(op.events)),
        units.duration(op.host_seconds),
        _text(units.share(report.share(op.host_seconds))),
        units.duration(op.mean_seconds),
        units.size(op.bytes_d2h),
        units.size(op.bytes_h2d),
    )


def _op_details(op: OpCost) -> Iterable[str]:
    facts = []
    if op.blocked or op.errors:
        facts.append(
            f"Refused {units.count(op.blocked)} times, raised {units.count(op.errors)} times."
        )
    if op.call is not None and op.call.site:
        facts.append(f"First called from <code>{_text(op.call.site)}</code>")
    if op.call is not None and op.call.arguments:
        facts.append(f"with <code>{_text(op.call.arguments)}</code>")
    if op.remedy is not None:
        facts.append(f"Instead: {_text(op.remedy.en)}")
    if not facts and not op.buckets:
        return
    yield f"<h2><code>{_text(op.op)}</code></h2>"
    yield from (f"<p>{fact}</p>" for fact in facts)
    if op.events and op.buckets:
        bounds = [_bound(units.duration(bound)) for bound in hook.DURATION.bounds]
        yield '<p class="soft">Events by duration, up to</p>'
        plot = svg.histogram(op.buckets, [*bounds, "longer"], "events by duration")
        yield plot.replace('class="plot"', 'class="plot small"')


def _bound(text: str) -> str:
    number, _, unit = text.partition(" ")
    return f"{number.removesuffix('.00').removesuffix('.0')}{unit}"


def _copies(report: Report) -> Iterable[str]:
    if report.transfers:
        yield "<h2>Transfers by cause</h2>"
        yield svg.bars(
            [
                (printable(f"{one.direction} {one.cause}"), one.bytes, units.size(one.bytes))
                for one in report.transfers
                if one.transfers
            ],
            "bytes by direction and cause",
            "bar other",
        )
        yield rows(
            ("direction", "cause", "copies", "bytes"),
            2,
            [
                *(
                    (
                        _text(one.direction),
                        _text(one.cause),
                        units.count(one.transfers),
                        units.size(one.bytes),
                    )
                    for one in report.transfers
                ),
                *(
                    (
                        _text(one.direction),
                        "all, as the driver sees them",
                        units.count(one.transfers),
                        units.size(one.bytes),
                    )
                    for one in report.driver
                ),
            ],
        )
    if report.syncs:
        yield "<h2>Waits for a value</h2>"
        ordered = sorted(report.syncs.items(), key=lambda row: (-row[1], row[0]))
        yield rows(
            ("operator", "times"),
            1,
            ((f"<code>{_text(op)}</code>", units.count(count)) for op, count in ordered),
        )


def _workers(report: Report) -> Iterable[str]:
    if report.workers:
        yield "<h2>Server processes</h2>"
        yield rows(
            ("process", "mode", "NPU", "events", "host time"),
            3,
            (
                (
                    _text(named(one)),
                    _text(one.mode),
                    _text(", ".join(one.npus)),
                    units.count(one.events),
                    units.duration(one.host_seconds),
                )
                for one in report.workers
            ),
        )


def _sources(report: Report) -> Iterable[str]:
    if not report.sources:
        return
    yield "<h2>Sources</h2>"
    states = {GOOD: '<span class="fine">good</span>', OFF: "off"}
    yield rows(
        ("source", "state", "detail"),
        3,
        (
            (
                _text(one.name),
                states.get(one.state, '<span class="bad">fails</span>'),
                _text(one.detail),
            )
            for one in report.sources
        ),
    )


def _text(text: str) -> str:
    return escape(printable(text))
