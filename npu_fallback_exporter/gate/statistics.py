"""Comparing two rates: an exact test for counts, a ratio with its error for sums.

Of two Poisson counts with exposures, given their sum, the one is binomial (Przyborowski and
Wilenski, 1940): no approximation, also for a handful of events. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
_NEGLIGIBLE = 1e-17
_BISECTIONS = 30
#: Of the ends of an interval from the share itself, in standard deviations.
_LARGEST_DEVIATION = 8.0
#: Fewer slices than this tell nothing about how much a sum varies.
_FEWEST_SLICES = 8


@dataclass(frozen=True)
class Interval:
    """A ratio, candidate to baseline, and what it may be at 95 % confidence."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Sums:
    """A quantity and its exposure (operators), in total and slice by slice."""

    value: float
    exposure: float
    slices: Sequence[tuple[float, float]]

    @property
    def rate(self) -> float:
        """Quantity per unit of exposure."""
        return self.value / self.exposure


def binomial_upper_tail(successes: int, trials: int, chance: float) -> float:
    """Probability of at least so many successes."""
    if successes <= 0:
        return 1.0
    if chance <= 0.0 or successes > trials:
        return 0.0
    if chance >= 1.0:
        return 1.0
    odds = chance / (1.0 - chance)
    if successes > trials * chance:
        return _tail(successes, trials, chance, odds, upward=True)
    return 1.0 - _tail(successes - 1, trials, chance, odds, upward=False)


def _tail(first: int, trials: int, chance: float, odds: float, *, upward: bool) -> float:
    """Sum of the terms from ``first`` away from the mean, where they only become smaller."""
    log_term = (
        math.lgamma(trials + 1)
        - math.lgamma(first + 1)
        - math.lgamma(trials - first + 1)
        + first * math.log(chance)
        + (trials - first) * math.log1p(-chance)
    )
    # Relative to the first term, so that a tail below the smallest float keeps its digits.
    term = total = 1.0
    step = first
    while term > total * _NEGLIGIBLE:
        if upward:
            term *= (trials - step) / (step + 1) * odds
            step += 1
        else:
            term *= step / (trials - step + 1) / odds
            step -= 1
        total += term
    return min(1.0, math.exp(log_term) * total)


def share_of(candidate: float, baseline: float, ratio: float = 1.0) -> float:
    """Return the share of all events that the candidate gets at a given ratio of the rates.

    Args:
        candidate: its exposure.
        baseline: its exposure.
        ratio: of the rates, candidate to baseline.
    """
    return ratio * candidate / (ratio * candidate + baseline)


def count_p_value(candidate: Sums, baseline: Sums, limit: float) -> float:
    """How likely so many events of the candidate are if its rate is at most ``limit`` times."""
    if math.isinf(limit):
        return 1.0
    ours, all_events = _effective(candidate, baseline)
    chance = share_of(candidate.exposure, baseline.exposure, limit)
    return binomial_upper_tail(ours, all_events, chance)


def count_ratio(candidate: Sums, baseline: Sums) -> Interval:
    """Ratio of the rates of two counts with its exact (Clopper-Pearson) interval."""
    ours, all_events = _effective(candidate, baseline)
    tail = (1.0 - CONFIDENCE) / 2.0
    odds = baseline.exposure / candidate.exposure
    low = _chance_with_upper_tail(ours, all_events, tail)
    high = _chance_with_upper_tail(ours + 1, all_events, 1.0 - tail)
    return Interval(
        _quotient(candidate.rate, baseline.rate),
        low / (1.0 - low) * odds if low < 1.0 else math.inf,
        high / (1.0 - high) * odds if high < 1.0 else math.inf,
    )


def _chance_with_upper_tail(successes: int, trials: int, tail: float) -> float:
    if successes <= 0:
        return 0.0
    if successes > trials:
        return 1.0
    share = successes / trials
    reach = _LARGEST_DEVIATION * math.sqrt((share * (1.0 - share) + 1.0 / trials) / trials)
    low, high = max(0.0, share - reach), min(1.0, share + reach)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if binomial_upper_tail(successes, trials, middle) < tail:
            low = middle
        else:
            high = middle
    return low


def _effective(candidate: Sums, baseline: Sums) -> tuple[int, int]:
    bursts = _dispersion((candidate, baseline))
    ours = _independent(candidate, bursts)
    return ours, ours + _independent(baseline, bursts)


def independent_events(side: Sums) -> int:
    """As many events as are independent of each other.

    One rare request may cause 30 events, which then prove as much as one. Events in different
    slices are taken for independent, those in one slice as far as chance explains that they come
    together.
    """
    return _independent(side, _dispersion((side,)))


def _independent(side: Sums, bursts: float) -> int:
    occupied = sum(1 for value, _ in side.slices if value > 0)
    return max(occupied, round(side.value / bursts))


def _dispersion(sides: Sequence[Sums]) -> float:
    """Pearson's statistic over the slices, less twice its standard error; at least 1.

    It is 1 for independent events, and about the size of the bursts otherwise.
    """
    squares, expected, slices, degrees = 0.0, 0.0, 0, 0
    for side in sides:
        used = [(value, exposure) for value, exposure in side.slices if exposure > 0]
        if side.value <= 0 or len(used) < _FEWEST_SLICES:
            continue
        rate = sum(value for value, _ in used) / sum(exposure for _, exposure in used)
        if rate <= 0:
            continue
        squares += sum(
            (value - rate * exposure) ** 2 / (rate * exposure) for value, exposure in used
        )
        expected += sum(rate * exposure for _, exposure in used)
        slices += len(used)
        degrees += len(used) - 1
    if not degrees:
        return 1.0
    error = math.sqrt((2.0 + slices / expected) / degrees)
    return max(1.0, squares / degrees - 2.0 * error)


def sum_ratio(candidate: Sums, baseline: Sums, confidence: float = CONFIDENCE) -> Interval | None:
    """Ratio of the rates of two sums; None where the slices are too few to tell its error.

    The error of each rate comes from how the slices scatter around it, that of the ratio from
    both on a logarithmic scale.
    """
    errors = [_relative_error(side) for side in (candidate, baseline)]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        return None
    ratio = _quotient(candidate.rate, baseline.rate)
    reach = math.exp(NormalDist().inv_cdf((1.0 + confidence) / 2.0) * math.hypot(*known))
    return Interval(ratio, ratio / reach, ratio * reach)


def _relative_error(side: Sums) -> float | None:
    used = [(value, exposure) for value, exposure in side.slices if exposure > 0]
    if len(used) < _FEWEST_SLICES or side.value <= 0:
        return None
    squares = sum((value - side.rate * exposure) ** 2 for value, exposure in used)
    return math.sqrt(squares * len(used) / (len(used) - 1)) / side.value


def _quotient(one: float, other: float) -> float:
    if other > 0:
        return one / other
    return math.inf if one > 0 else 1.0
