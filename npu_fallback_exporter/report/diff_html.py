"""A comparison as one file of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..pages.notes import printable
from . import svg, units
from .diff import APPEARED, GREW, SHRANK, VANISHED, Comparison, OpChange, summary
from .diff_text import COLUMNS, side, told
from .html import page, rows

_LEVELS = {APPEARED: "bad", GREW: "bad", SHRANK: "fine", VANISHED: "fine"}
_PLOTTED_OPS = 15


def document(comparison: Comparison) -> str:
    """Return the comparison as HTML."""
    return page("NPU fallbacks before and after", _content(comparison))


def _content(comparison: Comparison) -> Iterable[str]:
    yield "<h1>NPU fallbacks before and after</h1>"
    yield f'<p class="verdict">{escape(summary(comparison))}</p>'
    for name, report in (("Before", comparison.before), ("After", comparison.after)):
        yield f'<p class="soft">{name}: {escape(side(report))}</p>'
    if not comparison.ops:
        return
    yield "<h2>Share of time, before and after</h2>"
    yield svg.bars(list(_bars(comparison.ops[:_PLOTTED_OPS])), "share of time before and after")
    yield "<h2>Operators</h2>"
    yield rows(("operator", "change", *COLUMNS), 2, map(_row, comparison.ops))


def _bars(ops: Sequence[OpChange]) -> Iterable[tuple[str, float, str]]:
    for one in ops:
        before, after = one.before.share or 0.0, one.after.share or 0.0
        yield printable(one.op), before, f"{units.share(before)} before"
        yield "", after, f"{units.share(after)} after"


def _row(one: OpChange) -> Sequence[str]:
    level = _LEVELS.get(one.change, "")
    ratio = f" {units.times(one.ratio)}" if one.ratio else ""
    return (
        f"<code>{escape(printable(one.op))}</code>",
        f'<span class="{level}">{escape(one.change + ratio)}</span>',
        *(
            f"{escape(old)} → {escape(new)}"
            for old, new in zip(told(one.before), told(one.after), strict=True)
        ),
    )
