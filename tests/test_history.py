"""The history of an exporter: moments to rates, in bounded memory."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path

import pytest

from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.collectors.fallback import FallbackCollector
from npu_fallback_exporter.history.sampler import HistorySampler
from npu_fallback_exporter.history.series import MOMENTS, MOST_NPUS, MOST_OPS, Moment, Ring

from .support.page_factory import SECOND_NS, writer_of
from .support.report_scene import Scene, armed

FMAX = ("aten::fmax.out", "dispatcher")


def moment(second: float, number: int, **more: object) -> Moment:
    values: dict[str, object] = {
        "unix": 1e9 + second,
        "monotonic": second,
        "armed_seconds": 2 * second,
        "operators": 100 * number,
        "events": {FMAX: number},
        "host_seconds": {FMAX: number * 0.5},
    }
    return Moment(**{**values, **more})  # type: ignore[arg-type]


def ring_of(*moments: Moment) -> Ring:
    ring = Ring()
    for one in moments:
        ring.add(one)
    return ring


def test_rates_are_taken_over_the_time_between_two_moments() -> None:
    history = ring_of(moment(0, 5), moment(10, 25), moment(14, 25)).history()
    assert history.unix == (1e9 + 10, 1e9 + 14)
    assert history.events_per_second == (2.0, 0.0)
    assert history.host_share == (0.5, 0.0)
    assert (history.seconds, history.armed_seconds, history.operators) == (14, 28, 2000)


def test_what_was_counted_before_the_first_moment_is_not_recent() -> None:
    (op,) = ring_of(moment(0, 1000), moment(10, 1003)).history().ops
    assert (op.op, op.kind, op.events, op.host_seconds) == (*FMAX, 3, 1.5)
    assert op.events_per_second == (0.3,)


def test_an_op_without_events_in_all_that_time_is_left_out() -> None:
    assert ring_of(moment(0, 7), moment(10, 7)).history().ops == ()


def test_an_op_that_appears_later_had_none_before() -> None:
    new = ("aten::a", "dispatcher")
    ring = ring_of(
        moment(0, 1), moment(10, 1), moment(20, 1, events={FMAX: 1, new: 30}, host_seconds={})
    )
    (op,) = ring.history().ops
    assert op.events_per_second == (0.0, 3.0)


def test_utilization_that_is_not_known_leaves_a_gap() -> None:
    ring = ring_of(moment(0, 0), moment(10, 0, npu={"3": 0.25}, host_cpu=0.5), moment(20, 0))
    history = ring.history()
    assert history.npu == {"3": (0.25, None)}
    assert history.host_cpu == (0.5, None)


def test_there_is_no_share_of_time_where_nothing_was_armed() -> None:
    ring = ring_of(moment(0, 0, armed_seconds=4.0), moment(10, 0, armed_seconds=4.0))
    assert ring.history().host_share == (None,)


def test_fewer_than_two_moments_tell_nothing() -> None:
    assert ring_of().history().unix == ring_of(moment(0, 1)).history().unix == ()


def test_a_moment_that_is_not_later_is_left_out() -> None:
    assert len(ring_of(moment(0, 1), moment(10, 2), moment(10, 2)).history().unix) == 1


def test_it_covers_fifteen_minutes_and_no_more() -> None:
    history = ring_of(*(moment(10.0 * number, number) for number in range(500))).history()
    assert len(history.unix) == len(history.events_per_second) == 90
    assert history.unix[-1] - history.unix[0] == 890


def test_recently_is_five_minutes() -> None:
    history = ring_of(*(moment(10.0 * number, number) for number in range(500))).history()
    assert (history.seconds, history.operators, history.events) == (300, 3000, 30)
    assert history.ops[0].host_seconds == 15
    assert len(history.ops[0].events_per_second) == 90


def test_memory_is_bounded_whatever_is_counted() -> None:
    ring = Ring()
    for number in range(MOMENTS * 2):
        ops = {(f"aten::{op}", "dispatcher"): number for op in range(400)}
        npus = {str(npu): 0.5 for npu in range(300)}
        ring.add(moment(number, 0, events=ops, host_seconds=dict.fromkeys(ops, 1.0), npu=npus))
    kept = [one for row in ring._kept for one in row if isinstance(one, array)]
    assert {len(one) for one in kept} == {MOST_OPS, MOST_NPUS}
    assert sum(map(sys.getsizeof, kept)) < 256 << 10
    # The sums over all ops have those too that have no line of their own.
    assert ring.history().events_per_second[-1] == 400


def sampler_on(folder: Path, clock: list[float]) -> tuple[FallbackCollector, HistorySampler]:
    fallback = FallbackCollector(
        lambda: [folder], Aggregator(), monotonic_ns=lambda: int(clock[0] * SECOND_NS)
    )
    return fallback, HistorySampler(
        fallback, wall_clock=lambda: 1e9 + clock[0], monotonic=lambda: clock[0]
    )


def test_a_recent_scrape_is_used_instead_of_another_look(tmp_path: Path) -> None:
    clock = [100.0]
    fallback, history = sampler_on(tmp_path, clock)
    page = armed().events(FMAX[0], 1)
    with writer_of(page.write(tmp_path)):
        history.sample()
        clock[0] = 110.0
        list(fallback.collect())
        page.events(FMAX[0], 50).write(tmp_path)
        clock[0] = 114.0
        history.sample()  # sees what the scrape saw, at its time
        assert history.history().unix == (1e9 + 110,)
        assert history.history().events_per_second == (0.0,)
        clock[0] = 124.0
        history.sample()
        assert history.history().events_per_second == (0.0, 3.5)


def test_a_failing_look_costs_one_point_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def folders() -> list[Path]:
        calls.append(1)
        if len(calls) in (2, 3):
            raise OSError("no folder")
        return [tmp_path]

    history = HistorySampler(FallbackCollector(folders, Aggregator()), interval=0.01)
    with history:
        while not history.history().unix and len(calls) < 1000:
            pass
    assert [record.getMessage() for record in caplog.records] == [
        "history lacks a point: OSError: no folder"
    ]


def test_npus_have_the_label_of_their_metrics(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.utilization = [50.0, 10.0]
    scene.pass_time()
    scene.pass_time()
    found = [
        {sample.labels["npu"]: sample.value for sample in family.samples}
        for family in scene.composite.snapshot().metrics
        if family.name == "npu_aicore_utilization_ratio"
    ]
    lines = scene.history.history().npu
    assert found == [{"0": 0.5, "1": 0.1}]
    assert {npu: line[-1] for npu, line in lines.items()} == pytest.approx(found[0])
