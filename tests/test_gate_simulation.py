"""How often the gate is wrong: 200 canaries of each kind, with seeds of their own."""

from __future__ import annotations

import math
import random
from collections import Counter as Tally
from collections.abc import Callable, Mapping

import pytest

from npu_fallback_exporter.gate import readings
from npu_fallback_exporter.gate.limits import Limits
from npu_fallback_exporter.gate.readings import Counter
from npu_fallback_exporter.gate.traffic import Side, Slice
from npu_fallback_exporter.gate.verdict import Outcome, judge

REPETITIONS, REQUESTS, SLICES = 200, 10_000, 30
OPERATORS_PER_REQUEST = 300

pytestmark = pytest.mark.slow

#: Chance per request that an op falls back, and how often it then does.
Ops = Mapping[str, tuple[float, int]]
FREQUENT: Ops = {
    f"aten::frequent_{number}": (rate, 1)
    for number, rate in enumerate((0.9, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01))
}
#: So rare that one side may well miss what the other has.
RARE: Ops = {f"aten::rare_{number}": (3e-4 / 2**number, 1) for number in range(4)}
BURSTS: Ops = {f"aten::burst_{number}": (1e-2 / 4**number, 30) for number in range(4)}
NEW: Ops = {"aten::new": (1e-3, 1)}


def poisson(dice: random.Random, mean: float) -> int:
    if mean > 30:
        return max(0, round(dice.gauss(mean, math.sqrt(mean))))
    count, left, least = 0, dice.random(), math.exp(-mean)
    while left > least:
        count += 1
        left *= dice.random()
    return count


def side(dice: random.Random, ops: Ops, requests: int = REQUESTS) -> Side:
    """A side whose requests, operators, host times and bytes all vary."""
    found = Side(instances=1)
    for _ in range(SLICES):
        served = poisson(dice, requests / SLICES)
        rises = {
            readings.OPERATORS: served * OPERATORS_PER_REQUEST * dice.uniform(0.9, 1.1),
            readings.ARMED_SECONDS: 15.0,
            readings.SYNCS: served + poisson(dice, served / 10),
            readings.BYTES: served * dice.uniform(1e5, 2e5),
        }
        for op, (rate, burst) in ops.items():
            events = poisson(dice, served * rate) * burst
            if events:
                rises[Counter("npu_fallback_events_total", op)] = events
        total = sum(value for key, value in rises.items() if key.of)
        rises[readings.EVENTS] = total
        rises[readings.HOST_SECONDS] = total * 1e-3 * dice.lognormvariate(0.0, 0.3)
        found.slices.append(Slice(rises))
        for key, value in rises.items():
            found.history[key] = found.history.get(key, 0.0) + value
    return found


def outcomes(make: Callable[[random.Random], tuple[Side, Side]]) -> Tally[Outcome]:
    return Tally(judge(*make(random.Random(seed)), Limits()).outcome for seed in range(REPETITIONS))


@pytest.mark.parametrize(
    "ops",
    [FREQUENT, {**FREQUENT, **RARE}, {**FREQUENT, **BURSTS}],
    ids=["frequent ops", "rare ops too", "ops in bursts too"],
)
def test_a_canary_that_is_equal_to_its_baseline_passes(ops: Ops) -> None:
    found = outcomes(lambda dice: (side(dice, ops), side(dice, ops)))
    assert found[Outcome.PASS] + found[Outcome.FAIL] == REPETITIONS
    assert found[Outcome.FAIL] < 0.02 * REPETITIONS


def test_a_new_op_in_one_of_1000_requests_fails_beside_ten_times_the_traffic() -> None:
    found = outcomes(
        lambda dice: (side(dice, FREQUENT, 10 * REQUESTS), side(dice, {**FREQUENT, **NEW}))
    )
    assert found[Outcome.FAIL] == REPETITIONS


def test_a_new_op_in_one_of_1000_requests_fails_beside_a_baseline_that_is_as_new() -> None:
    # Chance gives less than five events, too few to tell from a rare op, to 3 % of the canaries.
    found = outcomes(lambda dice: (side(dice, FREQUENT), side(dice, {**FREQUENT, **NEW})))
    assert found[Outcome.FAIL] >= 0.95 * REPETITIONS


def test_two_fifths_more_fallbacks_of_one_op_fail() -> None:
    worse = {**FREQUENT, "aten::frequent_3": (0.14, 1)}
    found = outcomes(lambda dice: (side(dice, FREQUENT), side(dice, worse)))
    assert found[Outcome.FAIL] >= 0.95 * REPETITIONS
