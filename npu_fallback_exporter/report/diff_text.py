"""A comparison for a terminal, or as plain lines."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..pages.notes import printable
from . import units
from .diff import (
    APPEARED,
    GREW,
    SAME,
    SHRANK,
    VANISHED,
    Comparison,
    OpChange,
    Rates,
    summary,
    totals,
)
from .model import Report
from .text import say, table

_STYLES = {APPEARED: "bold red", GREW: "red", SHRANK: "green", VANISHED: "bold green", SAME: ""}

#: What :func:`told` returns.
COLUMNS = ("per 1,000 operators", "per second", "share of time", "bytes per 1,000", "mean")
_ESSENTIAL = (0, 2)
_WIDE = 118


def show(comparison: Comparison, out: Console) -> None:
    """Print all of it."""
    say(out, f"Before and after: {summary(comparison)}", "bold")
    for name, report in (("before", comparison.before), ("after ", comparison.after)):
        say(out, f"{name}: {side(report)}")
    if not comparison.ops:
        return
    say(out)
    # Before and after take room: a narrow terminal gets what matters most.
    shown = range(len(COLUMNS)) if out.width >= _WIDE else _ESSENTIAL
    made = table(out, ("operator", "change"), [COLUMNS[index] for index in shown])
    for one in comparison.ops:
        figures = _figures(one)
        made.add_row(
            Text(printable(one.op)),
            Text(_change(one), style=_STYLES[one.change]),
            *(figures[index] for index in shown),
        )
    out.print(made)


def _change(one: OpChange) -> str:
    return one.change if not one.ratio else f"{one.change} {units.times(one.ratio)}"


def _figures(one: OpChange) -> tuple[str, ...]:
    return tuple(
        f"{old} → {new}" for old, new in zip(told(one.before), told(one.after), strict=True)
    )


def told(rates: Rates) -> tuple[str, ...]:
    """Return the figures of one side, in the order of the columns."""
    return (
        units.rate(rates.per_thousand),
        units.rate(rates.per_second),
        units.share(rates.share),
        units.size(rates.bytes_per_thousand),
        units.duration(rates.mean_seconds),
    )


def side(report: Report) -> str:
    """Return one side in a line."""
    whole = totals(report)
    operators = "" if report.operators is None else f", {units.count(report.operators)} operators"
    rate = "" if whole.per_thousand is None else f", {units.rate(whole.per_thousand)} per 1,000"
    return (
        f"{units.count(report.events)} events{rate}, {units.share(whole.share)} of the time "
        f"(armed {units.duration(report.armed_seconds)}{operators}, "
        f"until {units.moment(report.made_unix)})"
    )
