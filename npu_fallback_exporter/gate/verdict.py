"""From two sides to a verdict: fail if worse is proven, pass only if nothing stands in the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from ..metrics import hook
from . import readings
from .costs import CostTest, cost_tests
from .counts import CountTest, new_ops, rate_tests
from .finding import PER, Finding
from .limits import Limits
from .traffic import Side

#: Prometheus itself takes a series for gone after five minutes.
_STALE_SECONDS = 300.0


class Outcome(Enum):
    """The verdict in one word."""

    PASS = "pass"  # nosec B105 # noqa: S105 - a verdict
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """What the gate says.

    Attributes:
        outcome: in one word.
        findings: all comparisons made; those that failed are the reasons for it.
        doubts: why there is no verdict, or why a pass would not be one.
        sides: what each side did, by its name.
    """

    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    doubts: tuple[str, ...] = ()
    sides: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def reasons(self) -> list[Finding]:
        """Findings for which the candidate fails."""
        return [finding for finding in self.findings if finding.failed]

    def as_json(self) -> dict[str, object]:
        """Everything, the most important first."""
        unproven = [
            finding for finding in self.findings if finding.baseline == 0 and not finding.failed
        ]
        return {
            "verdict": self.outcome.value,
            "reasons": [finding.as_json() for finding in self.reasons]
            + [{"check": "data", "message": doubt} for doubt in self.doubts],
            "notices": [f"not proven: {finding.message}" for finding in unproven if finding.op],
            **self.sides,
            "checks": [finding.as_json() for finding in self.findings],
        }


def judge(baseline: Side, candidate: Side, limits: Limits, end: float = math.inf) -> Verdict:
    """Compare two sides.

    Args:
        baseline: what runs today.
        candidate: what is to replace it.
        limits: how much worse it may be.
        end: Unix time of the end of the window, for the age of the candidate's last scrape;
            infinite: its age is of no concern.
    """
    named = {"baseline": baseline, "candidate": candidate}
    sides = {name: _told(side) for name, side in named.items()}
    lacking = [f"{name}: {lack}" for name, side in named.items() if (lack := _lack(side, limits))]
    if lacking:
        return Verdict(Outcome.INCONCLUSIVE, doubts=tuple(lacking), sides=sides)
    findings = tuple(_findings(candidate, baseline, limits))
    doubts = tuple(_doubts(candidate, baseline, end))
    if any(finding.failed for finding in findings):
        outcome = Outcome.FAIL
    else:
        outcome = Outcome.INCONCLUSIVE if doubts else Outcome.PASS
    return Verdict(outcome, findings, doubts, sides)


def _lack(side: Side, limits: Limits) -> str:
    """Why nothing can be judged; empty if something can."""
    if not side.instances:
        down = f" ({', '.join(side.down)} is down)" if side.down else ""
        return (
            f"no data of a hooked process{down}: check the selector or file, that the exporter is "
            "scraped, and that the hook is armed"
        )
    if side.not_numbers:
        return f"not a number in {', '.join(sorted(side.not_numbers))}: check what rewrites it"
    if readings.OPERATORS not in side.history:
        return (
            f"no {hook.OPERATORS.name}, the measure of traffic: set NPU_FALLBACK_TRACK=all "
            "in the server"
        )
    operators = side.total(readings.OPERATORS)
    if operators < limits.min_operators:
        left_out = (
            f"; {side.left_out} intervals between scrapes were warm-up or had a restart in them"
            if side.left_out
            else ""
        )
        return (
            f"{operators:,.0f} operators of the {limits.min_operators:,.0f} that a verdict needs"
            f"{left_out}: send more traffic or take a longer window"
        )
    return ""


def _findings(candidate: Side, baseline: Side, limits: Limits) -> Iterator[Finding]:
    yield from new_ops(candidate, baseline, limits)
    tests: list[CountTest | CostTest] = [
        *rate_tests(candidate, baseline, limits),
        *cost_tests(candidate, baseline, limits),
    ]
    for test in tests:
        yield test.finding(limits.alpha_of_rates / len(tests))


def _doubts(candidate: Side, baseline: Side, end: float) -> Iterator[str]:
    """Why what was seen of the candidate may not be all that it did."""
    if candidate.down:
        down = ", ".join(candidate.down)
        yield f"candidate: {down} cannot be scraped: see why the target is down"
    age = end - candidate.newest
    if math.isfinite(age) and age > _STALE_SECONDS:
        yield f"candidate: last scraped {age:.0f} s before the end: see whether it still runs"
    unarmed = candidate.known(hook.ARM_FAILURES.name) - baseline.known(hook.ARM_FAILURES.name)
    if unarmed:
        reasons = ", ".join(sorted(unarmed))
        yield f"candidate: the hook could not be armed in some process ({reasons}): see its log"
    key = readings.DEVICE_ALLOCATIONS
    if baseline.total(key) > 0 and not candidate.total(key):
        yield (
            "candidate: operators ran but none on the device, as in graph replay or on a CPU: "
            "see what it runs on"
        )


def _told(side: Side) -> dict[str, object]:
    operators, events = side.total(readings.OPERATORS), side.total(readings.EVENTS)
    armed = side.total(readings.ARMED_SECONDS)
    told = {
        "operators": operators,
        "fallbacks": events,
        "fallbacks_per_1000_operators": events / operators * PER if operators > 0 else None,
        "host_time_share": side.total(readings.HOST_SECONDS) / armed if armed > 0 else None,
    }
    finite = {
        name: value if value is not None and math.isfinite(value) else None
        for name, value in told.items()
    }
    return {"exporters": side.instances, **finite, "slices_left_out": side.left_out}
