"""What the gate lets pass."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Limits:
    """How much worse than its baseline a candidate may be.

    Attributes:
        alpha: how often at most a candidate that is equal to its baseline may fail.
        min_operators: operators that each side must have run, or nothing is judged. Without an
            event in 2,994 of them, a rate of one in a thousand is excluded at 95 %.
        fallback_ratio: of fallbacks per operator, of each op and of all; also of refusals and
            errors.
        syncs_ratio: of waits for a value per operator.
        time_ratio: of the host time of fallbacks per operator.
        bytes_ratio: of the bytes moved between host and device per operator.
        allow: globs of ops that may fall back as they like.
    """

    alpha: float = 0.02
    min_operators: float = 3000.0
    fallback_ratio: float = 1.1
    syncs_ratio: float = 1.1
    time_ratio: float = 1.5
    bytes_ratio: float = 1.25
    allow: tuple[str, ...] = ()

    def allows(self, op: str) -> bool:
        """Whether an op is on the allow-list."""
        return any(fnmatchcase(op, pattern) for pattern in self.allow)

    @property
    def alpha_of_new_ops(self) -> float:
        """Alpha for ops that the baseline does not have.

        All of it: an op that both sides have equally often, and that only the candidate happens
        to show, appears five times or more in at most 0.9 % of the windows, however rare it is.
        """
        return self.alpha

    @property
    def alpha_of_rates(self) -> float:
        """Alpha for all figures that both sides have, together."""
        return self.alpha / 5.0
