"""Checks of what is counted: fallbacks, refusals and errors by op, fallbacks and waits in all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..metrics import hook
from . import readings
from .finding import PER, Finding
from .limits import Limits
from .readings import Counter
from .statistics import Sums, count_p_value, count_ratio, independent_events, share_of
from .traffic import Side

#: Metrics with an op: the check of new ones, the check of known ones, the verb, and the noun.
_BY_OP = {
    hook.EVENTS.name: ("new_op", "op_rate", "falls back", "fallbacks"),
    hook.BLOCKED.name: ("new_refusal", "refusal_rate", "is refused", "refusals"),
    hook.ERRORS.name: ("new_error", "error_rate", "fails in its fallback", "failed fallbacks"),
}


@dataclass(frozen=True)
class CountTest:
    """A count of both sides whose rates are compared."""

    check: str
    what: str
    candidate: Sums
    baseline: Sums
    limit: float
    op: str | None = None

    def finding(self, alpha: float) -> Finding:
        """Fail if the ratio is above its limit and chance would do that less often than alpha."""
        p_value = count_p_value(self.candidate, self.baseline, self.limit)
        ratio = count_ratio(self.candidate, self.baseline)
        ours, theirs = self.candidate.rate * PER, self.baseline.rate * PER
        return Finding(
            self.check,
            p_value <= alpha,
            f"{self.what}: {ours:.4g} per 1,000 operators, {ours - theirs:+.4g} against the "
            f"baseline's {theirs:.4g} (up to {self.limit:g} times that is allowed)",
            theirs,
            ours,
            self.op,
            ratio.ratio,
            ratio.low,
            ratio.high,
            p_value,
        )


def rate_tests(candidate: Side, baseline: Side, limits: Limits) -> Iterator[CountTest]:
    """Everything that the baseline has, too."""
    allowed = [
        Counter(hook.EVENTS.name, op)
        for op in sorted(_seen(hook.EVENTS.name, candidate, baseline))
        if limits.allows(op)
    ]
    no_ops: list[Counter] = []
    totals = (
        ("fallback_rate", "fallbacks in all", readings.EVENTS, allowed, limits.fallback_ratio),
        ("syncs", "waits for a value", readings.SYNCS, no_ops, limits.syncs_ratio),
    )
    for check, what, counter, less, limit in totals:
        sides = (candidate.sums(counter, less), baseline.sums(counter, less))
        if any(side.value for side in sides):
            yield CountTest(check, what, *sides, limit)
    for name, (_, check, _, noun) in _BY_OP.items():
        for op in sorted(_seen(name, candidate, baseline) & baseline.known(name)):
            if not limits.allows(op):
                counter = Counter(name, op)
                sides = (candidate.sums(counter), baseline.sums(counter))
                yield CountTest(check, f"{noun} of {op}", *sides, limits.fallback_ratio, op)


def new_ops(candidate: Side, baseline: Side, limits: Limits) -> list[Finding]:
    """Ops that the baseline never had since its counters began, warm-up included.

    With enough of them, some op that both have is always rare enough to be missing in the
    baseline by chance. The chance that any op, given how often both sides had it together, is
    as convincing as this one while all are equal, is what is compared with alpha; half of the
    chance of the very outcome is taken (the mid-p value), since few events move in large steps.
    """
    exposure = candidate.total(readings.OPERATORS)
    before = baseline.history[readings.OPERATORS]
    share = share_of(exposure, before)
    together: list[int] = []
    found: list[tuple[str, str, int, int]] = []
    for name in _BY_OP:
        known = baseline.known(name)
        for op in sorted(candidate.seen(name) | known):
            if limits.allows(op):
                continue
            counter = Counter(name, op)
            sums = candidate.sums(counter)
            events = round(sums.value)
            independent = independent_events(sums)
            together.append(independent + round(baseline.history.get(counter, 0.0)))
            if op not in known:
                found.append((name, op, events, independent))
    findings = []
    for name, op, events, independent in found:
        chance = sum(share**number for number in together if number >= independent)
        chance -= share**independent / 2.0
        check, _, verb, _ = _BY_OP[name]
        rate = events / exposure * PER
        findings.append(
            Finding(
                check,
                chance <= limits.alpha_of_new_ops,
                f"{op} {verb} in the candidate, {rate:+.4g} per 1,000 operators ({events:,} in "
                f"{exposure:,.0f}), and never did in the baseline (0 in {before:,.0f})",
                0.0,
                rate,
                op,
                None,
                None,
                None,
                min(1.0, chance),
            )
        )
    return findings


def _seen(name: str, candidate: Side, baseline: Side) -> set[str]:
    return candidate.seen(name) | baseline.seen(name)
