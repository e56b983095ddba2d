"""What a check found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

#: Rates are told per so many operators.
PER = 1000.0


@dataclass(frozen=True)
class Finding:
    """The comparison of one figure.

    Attributes:
        check: which one.
        failed: whether the candidate is worse than it may be.
        message: one line for people.
        op: the operator, where the figure is that of one.
        baseline: per 1,000 operators; see the check for the unit.
        candidate: likewise.
        ratio: candidate to baseline; None: the baseline has none of it.
        low: lower end of the ratio's 95 % interval; None: unknown.
        high: upper end; None: unknown, or there is none.
        p_value: how likely such a difference, or a larger one, is if the candidate is no worse
            than it may be; None: no test.
    """

    check: str
    failed: bool
    message: str
    baseline: float
    candidate: float
    op: str | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None

    def as_json(self) -> dict[str, object]:
        """Fields for the verdict; JSON knows no infinity."""
        fields = {**asdict(self), "delta": self.candidate - self.baseline}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in fields.items()
        }
