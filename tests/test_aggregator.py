"""Pages over time to totals."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.pages.arm_failure import REASONS, ArmFailures, record
from npu_fallback_exporter.pages.discovery import scan
from npu_fallback_exporter.totals import Totals

from .support.page_factory import SECOND_NS, PageFactory, writer_of

BOOT_ID = "11111111-2222-3333-4444-555555555555"
Observe = Callable[..., Totals]


@pytest.fixture
def observe(tmp_path: Path) -> Observe:
    """Scan `tmp_path` at a second of the monotonic clock and return the totals."""
    aggregator = Aggregator(boot_id=BOOT_ID)

    def look(second: float = 1000) -> Totals:
        aggregator.observe(scan([tmp_path], ArmFailures()), int(second * SECOND_NS))
        return aggregator.totals

    return look


def _events(totals: Totals) -> dict[tuple[str, str, str], int]:
    return {labels: slot.events for labels, slot in totals.slots.items()}


def test_pages_of_several_processes_add_up(tmp_path: Path, observe: Observe) -> None:
    for npu in (0, 0, 1):
        PageFactory(davinci_devices=(3, 0, 0, 0)).events("aten::a", 10, npu).write(tmp_path)
    assert _events(observe()) == {
        ("aten::a", "dispatcher", "0"): 20,
        ("aten::a", "dispatcher", "1"): 10,
    }


def test_the_same_values_seen_twice_count_once(tmp_path: Path, observe: Observe) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    observe()
    assert _events(observe()) == {("aten::a", "dispatcher", "logical-0"): 3}


def test_what_a_page_rose_is_added(tmp_path: Path, observe: Observe) -> None:
    page = PageFactory().events("aten::a", 3)
    page.write(tmp_path)
    observe()
    page.events("aten::a", 5).events("aten::b", 1).write(tmp_path)
    assert sorted(_events(observe()).values()) == [1, 5]


def test_a_page_that_vanished_keeps_what_it_added(tmp_path: Path, observe: Observe) -> None:
    path = PageFactory().events("aten::a", 3).write(tmp_path)
    observe()
    path.unlink()
    totals = observe()
    assert list(_events(totals).values()) == [3]
    assert (totals.live.processes, totals.processes_finished) == (0, 1)


def test_a_page_that_became_unreadable_keeps_what_it_added(
    tmp_path: Path, observe: Observe
) -> None:
    path = PageFactory().events("aten::a", 3).write(tmp_path)
    observe()
    os.truncate(path, 100)
    totals = observe()
    assert list(_events(totals).values()) == [3]
    assert totals.live.unreadable == {"truncated": 1}


def test_a_page_that_can_be_read_again_adds_what_it_rose_meanwhile(
    tmp_path: Path, observe: Observe
) -> None:
    page = PageFactory().events("aten::a", 3)
    path = page.write(tmp_path)
    observe()
    os.truncate(path, 100)
    observe()
    page.events("aten::a", 7).write(tmp_path)
    assert list(_events(observe()).values()) == [7]


def test_a_page_whose_counters_fell_is_skipped_and_keeps_what_it_added(
    tmp_path: Path, observe: Observe
) -> None:
    page = PageFactory().events("aten::a", 3)
    page.write(tmp_path)
    observe()
    page.events("aten::a", 2).events("aten::b", 9).write(tmp_path)
    totals = observe()
    assert list(_events(totals).values()) == [3]
    assert totals.skipped["corrupt"] == 1


def test_two_processes_with_one_pid_do_not_mix(tmp_path: Path, observe: Observe) -> None:
    for namespace in (1, 2):
        page = PageFactory(pid=7, start_ticks=7, pid_namespace=namespace)
        page.events("aten::a", 5).write(tmp_path)
    assert list(_events(observe()).values()) == [10]


def test_a_copy_of_a_page_counts_once(tmp_path: Path, observe: Observe) -> None:
    page = PageFactory().events("aten::a", 5)
    page.write(tmp_path)
    page.write(tmp_path, "copy.page")
    totals = observe()
    assert list(_events(totals).values()) == [5]
    assert totals.processes_finished == 1


def test_a_process_that_ends_goes_from_live_to_finished(tmp_path: Path, observe: Observe) -> None:
    path = PageFactory().write(tmp_path)
    with writer_of(path):
        totals = observe()
        assert (totals.live.processes, totals.processes_finished) == (1, 0)
    totals = observe()
    assert (totals.live.processes, totals.processes_finished) == (0, 1)


def test_both_kinds_are_at_0_as_soon_as_a_process_is_armed(
    tmp_path: Path, observe: Observe
) -> None:
    PageFactory(davinci_devices=(0b110000, 0, 0, 0)).write(tmp_path)
    assert observe().kind_events == {
        ("dispatcher", "4"): 0,
        ("explicit_kernel", "4"): 0,
        ("dispatcher", "5"): 0,
        ("explicit_kernel", "5"): 0,
    }


def test_a_process_that_was_never_armed_makes_no_series(tmp_path: Path, observe: Observe) -> None:
    PageFactory(armed_since_ns=0).write(tmp_path)
    assert observe().kind_events == {}


def test_the_sum_over_all_ops_holds_op_other_too(tmp_path: Path, observe: Observe) -> None:
    PageFactory().events("aten::a", 2).events("__other__", 3).write(tmp_path)
    assert observe().kind_events["dispatcher", "logical-0"] == 5


def test_a_live_process_is_armed_until_now(tmp_path: Path, observe: Observe) -> None:
    path = PageFactory(armed_ns=5 * SECOND_NS, armed_since_ns=100 * SECOND_NS).write(tmp_path)
    with writer_of(path):
        assert observe(130).armed_ns == 35 * SECOND_NS


def test_a_process_that_was_killed_was_armed_until_it_was_last_seen(
    tmp_path: Path, observe: Observe
) -> None:
    PageFactory(armed_since_ns=100 * SECOND_NS, last_seen_ns=107 * SECOND_NS).write(tmp_path)
    assert observe(9000).armed_ns == 7 * SECOND_NS


def test_armed_time_does_not_fall_when_a_process_is_killed(
    tmp_path: Path, observe: Observe
) -> None:
    path = PageFactory(last_seen_ns=101 * SECOND_NS).write(tmp_path)
    with writer_of(path):
        observe(150)
    assert observe(160).armed_ns == 50 * SECOND_NS


def test_armed_time_of_another_boot_is_not_measured_with_this_clock(
    tmp_path: Path, observe: Observe
) -> None:
    path = PageFactory(boot_id=b"another", last_seen_ns=103 * SECOND_NS).write(tmp_path)
    with writer_of(path):
        assert observe(9000).armed_ns == 3 * SECOND_NS


def test_each_bad_file_is_counted_once_and_shown_while_it_is_there(
    tmp_path: Path, observe: Observe
) -> None:
    bad = tmp_path / "bad.page"
    bad.touch()
    observe()
    assert (observe().skipped["empty"], observe().live.unreadable["empty"]) == (1, 1)
    bad.unlink()
    assert (observe().skipped["empty"], observe().live.unreadable["empty"]) == (1, 0)


def test_restarting_workers_adds_no_series(tmp_path: Path, observe: Observe) -> None:
    counts = set()
    for _ in range(20):
        with ExitStack() as stack:
            for npu in (0, 1):
                page = PageFactory().events("aten::a", 1, npu)
                stack.enter_context(writer_of(page.write(tmp_path)))
            totals = observe()
            counts.add((len(totals.slots), len(totals.kind_events), len(totals.live.hooks)))
    assert len(counts) == 1
    assert sum(_events(observe()).values()) == 40


def test_the_most_ops_watched_by_a_live_process_are_shown(tmp_path: Path, observe: Observe) -> None:
    few = PageFactory(watched_with_cpu_kernel=3, watched_without_cpu_kernel=9).write(tmp_path)
    many = PageFactory(watched_with_cpu_kernel=5, watched_without_cpu_kernel=1).write(tmp_path)
    with writer_of(few), writer_of(many):
        live = observe().live
    assert (live.watched_with_cpu_kernel, live.watched_without_cpu_kernel) == (5, 9)


def test_an_arm_failure_is_counted_once_and_stays_counted(tmp_path: Path, observe: Observe) -> None:
    record(tmp_path, "build")
    observe()
    assert observe().arm_failures["build"] == 1
    for file in tmp_path.iterdir():
        file.unlink()
    record(tmp_path, "build")
    assert observe().arm_failures["build"] == 2


def test_every_reason_of_an_arm_failure_is_there_from_0(tmp_path: Path, observe: Observe) -> None:
    assert observe().arm_failures == dict.fromkeys(REASONS, 0)
