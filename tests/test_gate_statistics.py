"""The arithmetic of the gate, against exact fractions and simulated counts."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_fallback_exporter.gate.statistics import (
    Sums,
    binomial_upper_tail,
    count_p_value,
    count_ratio,
    independent_events,
    share_of,
    sum_ratio,
)


def whole(value: float, exposure: float = 1000.0) -> Sums:
    """A count that is known in total only, as of two saved scrapes."""
    return Sums(value, exposure, [(value, exposure)])


def sliced(values: list[float], exposure: float = 1000.0) -> Sums:
    return Sums(sum(values), exposure * len(values), [(value, exposure) for value in values])


def exact_tail(successes: int, trials: int, chance: Fraction) -> float:
    terms = (
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(max(0, successes), trials + 1)
    )
    return float(sum(terms, Fraction(0)))


@settings(deadline=None)  # exact fractions take long on a busy machine
@given(
    st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(-1, n + 1))),
    st.fractions(0, 1, max_denominator=97),
)
def test_the_tail_is_that_of_the_binomial(counts: tuple[int, int], chance: Fraction) -> None:
    trials, successes = counts
    found = binomial_upper_tail(successes, trials, float(chance))
    assert found == pytest.approx(exact_tail(successes, trials, chance), rel=1e-9, abs=1e-12)


def test_the_tail_of_a_billion_events_is_found_at_once() -> None:
    half = binomial_upper_tail(500_000_000, 1_000_000_000, 0.5)
    assert half == pytest.approx(0.5, abs=1e-4)
    assert binomial_upper_tail(600_000_000, 1_000_000_000, 0.5) == 0.0


def test_the_share_is_that_of_the_traffic() -> None:
    assert share_of(100.0, 900.0) == pytest.approx(0.1)
    assert share_of(100.0, 100.0, ratio=3.0) == pytest.approx(0.75)


def test_ten_events_against_none_at_equal_traffic_have_one_chance_in_1024() -> None:
    assert count_p_value(whole(10), whole(0), 1.0) == pytest.approx(2.0**-10)


def test_a_limit_of_infinity_lets_everything_pass() -> None:
    assert count_p_value(whole(10), whole(0), math.inf) == 1.0


def test_the_interval_of_the_ratio_is_the_exact_one() -> None:
    # 20 of 30 events at equal traffic: Clopper-Pearson gives 0.4719 to 0.8271 for the share.
    found = count_ratio(whole(20), whole(10))
    assert found.ratio == pytest.approx(2.0)
    assert found.low == pytest.approx(0.4719 / 0.5281, rel=1e-3)
    assert found.high == pytest.approx(0.8271 / 0.1729, rel=1e-3)


def test_the_ratio_to_nothing_has_no_upper_end() -> None:
    found = count_ratio(whole(3), whole(0))
    assert (found.ratio, found.high) == (math.inf, math.inf)
    assert 0 < found.low < math.inf


def test_of_nothing_on_both_sides_the_ratio_is_one() -> None:
    found = count_ratio(whole(0), whole(0))
    assert (found.ratio, found.low, found.high) == (1.0, 0.0, math.inf)


def test_thirty_events_in_one_slice_prove_as_much_as_one() -> None:
    assert independent_events(sliced([0.0] * 39 + [30.0])) == 1


def test_ten_events_in_ten_slices_prove_as_much_as_ten() -> None:
    assert independent_events(sliced([1.0, 0.0, 0.0, 0.0] * 10)) == 10


def test_events_that_come_by_chance_are_nearly_all_independent() -> None:
    dice = random.Random(1)
    values = [float(sum(dice.random() < 0.01 for _ in range(1000))) for _ in range(60)]
    assert independent_events(sliced(values)) >= 0.9 * sum(values)


def test_too_few_slices_tell_nothing_of_bursts() -> None:
    assert independent_events(whole(30)) == 30


def test_the_error_of_a_sum_comes_from_its_slices() -> None:
    dice = random.Random(2)
    one, other = (sliced([dice.uniform(0.0, 2.0) for _ in range(400)]) for _ in range(2))
    found = sum_ratio(one, other)
    assert found is not None
    # A uniform value scatters by 1/sqrt(3) of its mean, so 400 of them by 0.0289.
    assert math.log(found.high / found.low) / 2 == pytest.approx(
        1.96 * 0.0289 * math.sqrt(2), rel=0.1
    )
    assert found.low < found.ratio < found.high


def test_a_sum_that_is_known_in_total_only_has_no_error() -> None:
    assert sum_ratio(whole(5.0), whole(4.0)) is None
