"""From two sides to a verdict: what outranks what, and how it is told."""

from __future__ import annotations

import json
import math

from npu_fallback_exporter.gate import readings
from npu_fallback_exporter.gate.limits import Limits
from npu_fallback_exporter.gate.readings import Counter
from npu_fallback_exporter.gate.traffic import Side, Slice
from npu_fallback_exporter.gate.verdict import Outcome, Verdict, judge

OLD, NEW = "aten::fmax.out", "torchvision::nms"
SLICES = 20


def side(per_slice: dict[str, float], *, cost: float = 1e-3, operators: float = 10_000) -> Side:
    """Twenty slices in which ops fall back so often each time."""
    rises = {
        readings.OPERATORS: operators,
        readings.ARMED_SECONDS: 15.0,
        readings.EVENTS: sum(per_slice.values()),
        readings.HOST_SECONDS: cost * sum(per_slice.values()),
        **{Counter("npu_fallback_events_total", op): count for op, count in per_slice.items()},
    }
    found = Side(instances=1, slices=[Slice(rises)] * SLICES, newest=1000.0)
    found.history = {key: value * SLICES for key, value in rises.items()}
    return found


def failed(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(finding.check, finding.op) for finding in verdict.reasons]


def test_an_exporter_that_fell_silent_is_no_pass() -> None:
    equal = (side({OLD: 100}), side({OLD: 100}))
    assert judge(*equal, Limits(), end=1300.0).outcome is Outcome.PASS
    silent = judge(*equal, Limits(), end=1301.0)
    assert silent.outcome is Outcome.INCONCLUSIVE
    assert "last scraped 301 s before the end" in silent.doubts[0]


def test_what_is_proven_fails_whatever_else_is_in_doubt() -> None:
    candidate = side({OLD: 100, NEW: 5})
    candidate.down = ("10.0.0.1:10837",)
    verdict = judge(side({OLD: 100}), candidate, Limits())
    assert (verdict.outcome, len(verdict.doubts)) == (Outcome.FAIL, 1)


def test_a_new_op_that_chance_explains_is_a_notice() -> None:
    candidate = side({OLD: 100})
    key = Counter("npu_fallback_events_total", NEW)
    candidate.slices[0] = Slice({**candidate.slices[0].rises, key: 3.0})
    verdict = judge(side({OLD: 100}), candidate, Limits())
    assert verdict.outcome is Outcome.PASS
    (notice,) = verdict.as_json()["notices"]  # type: ignore[misc]
    assert str(notice).startswith(f"not proven: {NEW} falls back in the candidate, +0.015 per")


def test_an_allowed_op_counts_in_no_rate() -> None:
    limits = Limits(allow=("torchvision::*",))
    verdict = judge(side({OLD: 100}), side({OLD: 100, NEW: 900}, cost=1e-4), limits)
    assert verdict.outcome is Outcome.PASS
    assert failed(judge(side({OLD: 100}), side({OLD: 100, NEW: 900}, cost=1e-4), Limits())) == [
        ("new_op", NEW),
        ("fallback_rate", None),
    ]


def test_an_allowed_op_still_has_to_be_cheap() -> None:
    limits = Limits(allow=("torchvision::*",))
    verdict = judge(side({OLD: 100}), side({OLD: 100, NEW: 900}, cost=1e-3), limits)
    assert failed(verdict) == [("host_time", None)]


def test_time_that_nobody_would_notice_may_double() -> None:
    cheap = judge(side({OLD: 100}, cost=1e-5), side({OLD: 100}, cost=3e-5), Limits())
    assert cheap.outcome is Outcome.PASS


def test_more_traffic_alone_is_not_worse() -> None:
    busy = side({OLD: 1000}, operators=100_000)
    assert judge(side({OLD: 100}), busy, Limits()).outcome is Outcome.PASS


def test_the_verdict_is_json_without_infinities() -> None:
    verdict = judge(side({}), side({OLD: 100}), Limits(fallback_ratio=math.inf))
    told = json.loads(json.dumps(verdict.as_json(), allow_nan=False))
    assert told["verdict"] == "fail"
    assert told["reasons"][0]["ratio"] is None
    assert told["candidate"]["fallbacks_per_1000_operators"] == 10.0
