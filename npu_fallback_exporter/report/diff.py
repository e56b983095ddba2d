"""Before and after: two reports compared by rates, since they cover different times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..gate.statistics import Sums, count_ratio
from .model import OpCost, Report

APPEARED, VANISHED, GREW, SHRANK, SAME = "appeared", "vanished", "grew", "shrank", "same"

#: A change by less than this is not worth a word.
_LEAST_CHANGE = 0.05
#: So many events on both sides tell a change by that much from chance.
_SURE_EVENTS = 10_000
#: Times vary from run to run where counts do not.
_LEAST_CHANGE_OF_TIME = 0.2


@dataclass(frozen=True)
class Rates:
    """One op on one side. None: that side lacks the denominator.

    Attributes:
        per_thousand: events in a thousand operators.
        per_second: events per armed second.
        share: host seconds per armed second.
        bytes_per_thousand: bytes both ways in a thousand operators.
        mean_seconds: of an event.
    """

    events: int
    per_thousand: float | None
    per_second: float | None
    share: float | None
    bytes_per_thousand: float | None
    mean_seconds: float | None


@dataclass(frozen=True)
class OpChange:
    """One op on both sides.

    Attributes:
        change: APPEARED, VANISHED, GREW, SHRANK or SAME, by events per operator, or per time where
            operators are not watched; where those are the same, by its share of time.
        ratio: of these rates, after to before; None: there was none before.
    """

    op: str
    kind: str
    change: str
    before: Rates
    after: Rates
    ratio: float | None

    @property
    def share_difference(self) -> float:
        """How far its share of time rose."""
        return (self.after.share or 0.0) - (self.before.share or 0.0)


@dataclass(frozen=True)
class Comparison:
    """Two reports, and their ops, those first whose share of time changed most."""

    before: Report
    after: Report
    ops: tuple[OpChange, ...]

    def count(self, change: str) -> int:
        """How many ops changed in this way."""
        return sum(op.change == change for op in self.ops)


def compare(before: Report, after: Report) -> Comparison:
    """Compare two reports."""
    ours = {(op.op, op.kind): op for op in after.ops if op.events}
    theirs = {(op.op, op.kind): op for op in before.ops if op.events}
    changes = [
        _change(key, before, theirs.get(key), after, ours.get(key))
        for key in dict.fromkeys((*theirs, *ours))
    ]
    changes.sort(key=lambda one: (-abs(one.share_difference), one.change == SAME, one.op, one.kind))
    return Comparison(before, after, tuple(changes))


def summary(comparison: Comparison) -> str:
    """Return one sentence on what changed."""
    parts = [
        f"{number} {'operator' if number == 1 else 'operators'} {change}"
        for change in (APPEARED, VANISHED, GREW, SHRANK)
        if (number := comparison.count(change))
    ]
    return f"{', '.join(parts) or 'no operator changed'}."


def as_json(comparison: Comparison) -> dict[str, object]:
    """Return it as JSON; docs/report.md describes the fields."""
    return {
        "format": "npu-fallback-report-diff",
        "format_version": 1,
        "summary": summary(comparison),
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "ops": [
            {
                "op": one.op,
                "kind": one.kind,
                "change": one.change,
                "ratio": one.ratio,
                "share_difference": one.share_difference,
                "before": vars(one.before),
                "after": vars(one.after),
            }
            for one in comparison.ops
        ],
    }


def totals(report: Report) -> Rates:
    """Return the rates of all ops of one side together."""
    whole = OpCost(
        "",
        "",
        events=report.events,
        host_seconds=_sum([op.host_seconds for op in report.ops]),
        duration_seconds=sum(op.duration_seconds for op in report.ops),
        bytes_d2h=sum(op.bytes_d2h for op in report.ops),
        bytes_h2d=sum(op.bytes_h2d for op in report.ops),
    )
    return _rates(report, whole)


def _side(report: Report) -> dict[str, object]:
    return {
        "since_unix": report.since_unix,
        "made_unix": report.made_unix,
        "armed_seconds": report.armed_seconds,
        "operators": report.operators,
        **vars(totals(report)),
    }


def _change(
    key: tuple[str, str], before: Report, old: OpCost | None, after: Report, new: OpCost | None
) -> OpChange:
    old, new = old or OpCost(*key, host_seconds=0.0), new or OpCost(*key, host_seconds=0.0)
    rates = _rates(before, old), _rates(after, new)
    if not old.events:
        return OpChange(*key, APPEARED, *rates, None)
    if not new.events:
        return OpChange(*key, VANISHED, *rates, 0.0)
    ratio, sure = _event_ratio(before, old, after, new)
    change = _word(ratio, _LEAST_CHANGE) if sure else SAME
    if change == SAME and rates[0].share and rates[1].share is not None:
        change = _word(rates[1].share / rates[0].share, _LEAST_CHANGE_OF_TIME)
    return OpChange(*key, change, *rates, ratio)


def _event_ratio(
    before: Report, old: OpCost, after: Report, new: OpCost
) -> tuple[float | None, bool]:
    """Ratio of the rates of events, and whether chance alone does not explain it."""
    if before.operators and after.operators:
        exposures: Sequence[float] = (before.operators, after.operators)
    else:
        exposures = (before.armed_seconds, after.armed_seconds)
    if min(exposures) <= 0:
        return None, False
    then, now = (
        Sums(float(op.events), exposure, ())
        for op, exposure in zip((old, new), exposures, strict=True)
    )
    if min(old.events, new.events) >= _SURE_EVENTS:
        return now.rate / then.rate, True
    told = count_ratio(now, then)
    return told.ratio, not told.low <= 1.0 <= told.high


def _word(ratio: float | None, least: float) -> str:
    if ratio is None or not math.isfinite(ratio) or abs(ratio - 1.0) < least:
        return SAME
    return GREW if ratio > 1.0 else SHRANK


def _rates(report: Report, op: OpCost) -> Rates:
    armed = report.armed_seconds
    moved = op.bytes_d2h + op.bytes_h2d
    return Rates(
        events=op.events,
        per_thousand=report.per_thousand_operators(op.events),
        per_second=op.events / armed if armed > 0 else None,
        share=report.share(op.host_seconds),
        bytes_per_thousand=report.per_thousand_operators(moved),
        mean_seconds=op.mean_seconds,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None
