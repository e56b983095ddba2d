"""Processes that have ended: their pages go, their counts stay, and are counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_fallback_exporter import aggregator
from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.carried import record as carried_record
from npu_fallback_exporter.carried import retirement
from npu_fallback_exporter.carried.retirement import tidy
from npu_fallback_exporter.collectors.fallback import FallbackCollector
from npu_fallback_exporter.collectors.housekeeping import Housekeeping
from npu_fallback_exporter.pages.arm_failure import record

from .support.exporter_process import wait_until
from .support.in_process_exporter import InProcessExporter, pages_in
from .support.page_factory import SECOND_NS, PageFactory, writer_of

Exporter = InProcessExporter


def _all_of(totals: object) -> dict[str, object]:
    return {name: value for name, value in vars(totals).items() if name not in {"live", "skipped"}}


def _busy_page() -> PageFactory:
    page = PageFactory(boundary=2, driver_bytes=(9, 8), driver_transfers=(2, 1))
    page.set(transfer_size_buckets=tuple(range(16)), ops_overflowed=1)
    page.set(armed_ns=5 * SECOND_NS, last_seen_ns=107 * SECOND_NS, davinci_devices=(3, 0, 0, 0))
    page.events("aten::a", 3).events("aten::a", 4, npu=1).events("aten::l", 1, 0, "explicit_kernel")
    page.slot("aten::bad", blocked=2, errors=1).events("__other__", 6).sync("aten::nonzero", 5)
    return page.transfer("d2h", "user", 4096, 2).shard(0, 100, 10)


def test_the_page_of_a_process_that_has_ended_is_removed_and_all_its_counts_stay(
    tmp_path: Path,
) -> None:
    _busy_page().write(tmp_path)
    exporter = Exporter(tmp_path)
    before = _all_of(exporter.look()) | {"slots": dict(exporter.totals.slots)}
    assert pages_in(tmp_path) == []
    assert _all_of(exporter.look()) == before
    assert before["processes_finished"] == 1


def test_an_exporter_that_starts_later_has_the_same_counts(tmp_path: Path) -> None:
    _busy_page().write(tmp_path)
    first = Exporter(tmp_path)
    first.look()
    assert _all_of(Exporter(tmp_path).look()) == _all_of(first.totals)


def test_the_page_of_a_live_process_stays(tmp_path: Path) -> None:
    path = PageFactory().events("aten::a", 3).write(tmp_path)
    with writer_of(path):
        Exporter(tmp_path).look()
        assert path.exists()


def test_what_a_process_counted_after_the_last_look_is_not_lost(tmp_path: Path) -> None:
    page = PageFactory().events("aten::a", 3)
    path = page.write(tmp_path)
    exporter, other = Exporter(tmp_path), Exporter(tmp_path)
    with writer_of(path):
        assert exporter.events() == other.events() == {"aten::a": 3}
        page.events("aten::a", 8).events("aten::b", 1).write(tmp_path)
    assert exporter.events() == {"aten::a": 8, "aten::b": 1}
    assert pages_in(tmp_path) == []
    assert other.events() == {"aten::a": 8, "aten::b": 1}
    assert (other.totals.processes_finished, other.totals.live.processes) == (1, 0)


def test_an_exporter_that_ends_between_merging_and_removing_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(retirement, "_unlink", lambda descriptor, names: None)
        assert Exporter(tmp_path).events() == {"aten::a": 3}
    assert len(pages_in(tmp_path)) == 1
    again = Exporter(tmp_path)
    assert again.events() == {"aten::a": 3}
    assert pages_in(tmp_path) == []
    assert again.events() == {"aten::a": 3}
    assert again.totals.processes_finished == 1


def test_an_exporter_that_was_away_for_thousands_of_processes_counts_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_record, "MAX_MERGED", 4)
    busy, away = Exporter(tmp_path), Exporter(tmp_path)
    path = PageFactory().events("aten::a", 100).write(tmp_path)
    with writer_of(path):
        assert away.events() == {"aten::a": 100}
    record(tmp_path, "page")
    for _ in range(9):
        PageFactory().events("aten::a", 1).write(tmp_path)
        busy.look()
    assert away.events() == busy.events() == {"aten::a": 109}
    assert away.totals.arm_failures == busy.totals.arm_failures
    assert away.totals.processes_finished == 10


def test_a_copy_of_a_live_page_is_never_merged(tmp_path: Path) -> None:
    page = PageFactory().events("aten::a", 3)
    copy = page.write(tmp_path, "copy.page")
    exporter = Exporter(tmp_path)
    with writer_of(page.write(tmp_path)):
        exporter.look()
        assert copy.exists()
        page.events("aten::a", 5).write(tmp_path)
        assert exporter.events() == {"aten::a": 5}
    assert exporter.events() == {"aten::a": 5}
    assert pages_in(tmp_path) == []


def test_arm_failures_are_carried_over_too(tmp_path: Path) -> None:
    for reason in ("page", "page", "build"):
        record(tmp_path, reason)
    exporter, other = Exporter(tmp_path), Exporter(tmp_path)
    other.look()
    for one in (exporter, other, Exporter(tmp_path)):
        found = one.look().arm_failures
        assert (found["page"], found["build"]) == (2, 1)
    assert pages_in(tmp_path) == []


def test_one_folder_under_two_names_counts_once(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    PageFactory().events("aten::a", 3).write(folder)
    exporter = Exporter(folder, link)
    for _ in range(3):
        assert exporter.events() == {"aten::a": 3}
    assert Exporter(folder, link).events() == {"aten::a": 3}


def test_folders_are_carried_over_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        PageFactory().events("aten::a", 3).write(tmp_path / name)
    exporter = Exporter(tmp_path / "a", tmp_path / "b")
    assert exporter.events() == exporter.events() == {"aten::a": 6}
    assert Exporter(tmp_path / "a").events() == {"aten::a": 3}


def test_an_exporter_that_starts_later_folds_the_same_ops(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path, max_ops=2)
    for number, op in enumerate(("aten::c", "aten::b", "aten::a")):
        page = PageFactory().slot(op, first_seen_unix_ns=number + 1, events=1)
        with writer_of(page.write(tmp_path)):
            exporter.look()
    later = Exporter(tmp_path, max_ops=2)
    assert exporter.events() == later.events() == {"aten::c": 1, "aten::b": 1, "__other__": 1}
    assert exporter.totals.ops_overflowed == later.totals.ops_overflowed == 1


def test_armed_time_of_a_killed_process_does_not_fall_when_the_exporter_starts_again(
    tmp_path: Path,
) -> None:
    exporter = Exporter(tmp_path)
    exporter.second = 150
    path = PageFactory(last_seen_ns=101 * SECOND_NS).write(tmp_path)
    with writer_of(path):
        assert exporter.look().armed_ns == 50 * SECOND_NS
    for _ in range(2):  # first with the page, then with the totals
        assert Exporter(tmp_path).look().armed_ns == 50 * SECOND_NS
    assert pages_in(tmp_path) == []


def test_a_process_that_arms_tidies_a_crowded_folder_where_no_exporter_runs(
    tmp_path: Path,
) -> None:
    for _ in range(64):
        PageFactory().events("aten::a", 1).write(tmp_path)
    tidy(tmp_path)
    assert len(pages_in(tmp_path)) == 64
    PageFactory().events("aten::a", 1).write(tmp_path)
    tidy(tmp_path)
    assert pages_in(tmp_path) == []
    assert Exporter(tmp_path).events() == {"aten::a": 65}


def test_tidying_keeps_the_armed_time_that_was_shown(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    exporter.second = 150
    with writer_of(PageFactory(last_seen_ns=101 * SECOND_NS).write(tmp_path)):
        exporter.look()
    tidy(tmp_path, most=0)
    assert pages_in(tmp_path) == []
    assert Exporter(tmp_path).look().armed_ns == 50 * SECOND_NS


def test_tidying_what_is_no_folder_raises_nothing(tmp_path: Path) -> None:
    tidy(tmp_path / "missing")


def test_pages_are_retired_although_nobody_scrapes(tmp_path: Path) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    collector = FallbackCollector(lambda: [tmp_path], Aggregator())
    with Housekeeping(collector, interval=0.01):
        wait_until(lambda: pages_in(tmp_path) == [])


def test_housekeeping_leaves_alone_what_was_just_scraped(tmp_path: Path) -> None:
    collector = FallbackCollector(lambda: [tmp_path], Aggregator(), monotonic_ns=lambda: 5)
    list(collector.collect())
    PageFactory().events("aten::a", 3).write(tmp_path)
    collector.look_unless_seen_within(30)
    assert len(pages_in(tmp_path)) == 1


def test_a_clock_that_is_set_back_changes_no_count(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    for created in (10**18, 1, 10**17):
        page = PageFactory(created_unix_ns=created)
        page.slot("aten::a", first_seen_unix_ns=created, events=2).write(tmp_path)
        exporter.look()
    assert exporter.events() == Exporter(tmp_path).events() == {"aten::a": 6}
    assert exporter.totals.created_unix_ns == 1


def test_pages_that_somebody_removes_for_ever_fill_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregator, "_MAX_VANISHED", 3)
    exporter = Exporter(tmp_path)
    for _ in range(10):
        path = PageFactory().events("aten::a", 1).write(tmp_path)
        record(tmp_path, "page")
        with writer_of(path):
            exporter.look()
            path.unlink()
    assert exporter.events() == {"aten::a": 10}
    assert exporter.totals.processes_finished == 10
    assert exporter.totals.arm_failures["page"] == 10
    assert len(exporter.aggregator.armed_ns) == 3
