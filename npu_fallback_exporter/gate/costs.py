"""Checks of what is summed: host time of fallbacks, bytes between host and device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import readings
from .finding import PER, Finding
from .limits import Limits
from .statistics import Sums, sum_ratio
from .traffic import Side

#: A rise below these is nothing that anyone would notice, whatever its ratio.
_SHARE_THAT_MATTERS = 0.01
_BYTES_THAT_MATTER = 65536.0 / PER


@dataclass(frozen=True)
class CostTest:
    """A sum of both sides whose rates per operator are compared.

    Attributes:
        matters: the least difference per operator that counts.
        scale: from the rate per operator to the figure in the message.
        text: of the message, with the figures of the candidate, the difference, the baseline.
    """

    check: str
    candidate: Sums
    baseline: Sums
    limit: float
    matters: float
    scale: float
    text: str

    def finding(self, alpha: float) -> Finding:
        """Fail if the ratio is above its limit, surely so as far as its error can be told."""
        told = sum_ratio(self.candidate, self.baseline)
        surely = sum_ratio(self.candidate, self.baseline, 1.0 - 2.0 * alpha)
        ours, theirs = self.candidate.rate, self.baseline.rate
        least = surely.low if surely else (ours / theirs if theirs > 0 else float("inf"))
        failed = ours - theirs >= self.matters and least > self.limit
        figures = (ours * self.scale, (ours - theirs) * self.scale, theirs * self.scale)
        return Finding(
            self.check,
            failed,
            f"{self.text.format(*figures)} (up to {self.limit:g} times that is allowed)",
            theirs * PER,
            ours * PER,
            ratio=ours / theirs if theirs > 0 else None,
            low=told.low if told else None,
            high=told.high if told else None,
        )


def cost_tests(candidate: Side, baseline: Side, limits: Limits) -> Iterator[CostTest]:
    """Those that either side has anything of."""
    sides = (candidate.sums(readings.HOST_SECONDS), baseline.sums(readings.HOST_SECONDS))
    if any(side.value for side in sides):
        # A side with more traffic spends more of its time in fallbacks without being worse: so
        # both shares are told at the same traffic, that of both together.
        operators = sum(side.exposure for side in sides)
        armed = candidate.total(readings.ARMED_SECONDS) + baseline.total(readings.ARMED_SECONDS)
        pace = operators / armed if armed > 0 else 0.0
        yield CostTest(
            "host_time",
            *sides,
            limits.time_ratio,
            _SHARE_THAT_MATTERS / pace if pace > 0 else 0.0,
            pace,
            "host time of fallbacks: {:.2%} of the time at equal traffic, {:+.2%} against the "
            "baseline's {:.2%}",
        )
    sides = (candidate.sums(readings.BYTES), baseline.sums(readings.BYTES))
    if any(side.value for side in sides):
        yield CostTest(
            "bytes",
            *sides,
            limits.bytes_ratio,
            _BYTES_THAT_MATTER,
            1.0,
            "bytes between host and device: {:,.0f} per operator, {:+,.0f} against the "
            "baseline's {:,.0f}",
        )
