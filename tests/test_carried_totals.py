"""Processes that have ended: their pages go, their counts stay, and are counted once."""

from __future__ import annotations

import fcntl
import logging
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
from .support.in_process_exporter import InProcessExporter
from .support.page_factory import SECOND_NS, PageFactory, writer_of
from .support.page_life import run

Exporter = InProcessExporter


def _pages(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix in {".page", ".armfail"})


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
    assert _pages(tmp_path) == []
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
    assert _pages(tmp_path) == []
    assert other.events() == {"aten::a": 8, "aten::b": 1}
    assert (other.totals.processes_finished, other.totals.live.processes) == (1, 0)


def test_an_exporter_that_ends_between_merging_and_removing_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(retirement, "_unlink", lambda descriptor, names: None)
        assert Exporter(tmp_path).events() == {"aten::a": 3}
    assert len(_pages(tmp_path)) == 1
    again = Exporter(tmp_path)
    assert again.events() == {"aten::a": 3}
    assert _pages(tmp_path) == []
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
    assert _pages(tmp_path) == []


def test_arm_failures_are_carried_over_too(tmp_path: Path) -> None:
    for reason in ("page", "page", "build"):
        record(tmp_path, reason)
    exporter, other = Exporter(tmp_path), Exporter(tmp_path)
    other.look()
    for one in (exporter, other, Exporter(tmp_path)):
        found = one.look().arm_failures
        assert (found["page"], found["build"]) == (2, 1)
    assert _pages(tmp_path) == []


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
    assert _pages(tmp_path) == []


# What may be in the way


@pytest.mark.parametrize("kind", [fcntl.LOCK_EX, fcntl.LOCK_SH], ids=["exclusive", "shared"])
def test_a_lock_that_somebody_else_holds_is_not_waited_for(tmp_path: Path, kind: int) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter = Exporter(tmp_path)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind)
        assert exporter.events() == {"aten::a": 3}
        assert len(_pages(tmp_path)) == 1
    finally:
        os.close(descriptor)
    assert exporter.events() == {"aten::a": 3}
    assert _pages(tmp_path) == []


@contextmanager
def _as_nobody(group: int = 65534) -> Iterator[None]:
    os.setegid(group)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without the right")
@pytest.mark.parametrize("mode", [0o755, 0o1777], ids=["read-only", "sticky"])
def test_an_exporter_that_may_not_remove_pages_only_reads(mode: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(mode)
        path = PageFactory().events("aten::a", 3).write(folder)
        path.chmod(0o644)
        with _as_nobody():
            exporter = Exporter(folder)
            assert exporter.events() == exporter.events() == {"aten::a": 3}
        assert [file.name for file in folder.iterdir()] == [path.name]
        other = Exporter(folder)
        other.look()
        assert _pages(folder) == []
        (folder / "totals.json").chmod(0o644)
        with _as_nobody():
            assert exporter.events() == Exporter(folder).events() == {"aten::a": 3}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_exporter_of_the_group_may_read_and_one_of_another_group_may_not() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "pages"
        run("shared", folder, 54321)
        path = PageFactory().events("aten::a", 3).write(folder)
        os.chown(path, -1, 54321)
        path.chmod(0o640)
        with _as_nobody(54321):
            assert Exporter(folder).events() == {"aten::a": 3}
        with _as_nobody():
            exporter = Exporter(folder)
            assert exporter.events() == {}
            assert exporter.totals.live.unreadable == {"permission": 1}
        Exporter(folder).look()
        assert _pages(folder) == []
        with _as_nobody(54321):
            assert Exporter(folder).events() == {"aten::a": 3}


def test_without_room_for_the_totals_the_pages_stay_and_one_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter = Exporter(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with caplog.at_level(logging.WARNING):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            assert exporter.events() == exporter.events() == {"aten::a": 3}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [message.getMessage() for message in caplog.records] == [
        f"cannot carry over the counts of ended processes in {tmp_path} (File too large): "
        "their pages stay there; free space, or run the exporter as the server's user"
    ]
    assert len(list(tmp_path.iterdir())) == 1
    assert exporter.events() == {"aten::a": 3}
    assert _pages(tmp_path) == []


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b'{"format":"npu-fallback-totals","version":1}']
)
def test_damaged_totals_are_set_aside_and_a_running_exporter_keeps_its_counts(
    tmp_path: Path, data: bytes
) -> None:
    exporter = Exporter(tmp_path)
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter.look()
    (tmp_path / "totals.json").write_bytes(data)
    PageFactory().events("aten::a", 4).write(tmp_path)
    for _ in range(3):
        assert exporter.events() == {"aten::a": 7}
    assert (tmp_path / "totals.json.corrupt").read_bytes() == data
    assert Exporter(tmp_path).events() == {"aten::a": 4}


def test_totals_that_fell_are_skipped(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter.look()
    older = (tmp_path / "totals.json").read_bytes()
    PageFactory().events("aten::a", 4).write(tmp_path)
    exporter.look()
    exporter.look()
    (tmp_path / "totals.json").write_bytes(older)
    assert exporter.events() == {"aten::a": 7}
    assert exporter.totals.skipped["corrupt"] == 1


def test_totals_of_another_version_are_left_alone_and_so_are_the_pages(tmp_path: Path) -> None:
    data = b'{"format":"npu-fallback-totals","version":9}'
    (tmp_path / "totals.json").write_bytes(data)
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter = Exporter(tmp_path)
    assert exporter.events() == exporter.events() == {"aten::a": 3}
    assert len(_pages(tmp_path)) == 1
    assert (tmp_path / "totals.json").read_bytes() == data
    assert exporter.totals.skipped["version"] == 1


@pytest.mark.parametrize("name", ["totals.json", "armed.json", "totals.json.tmp", "armed.json.tmp"])
def test_links_out_of_the_folder_are_neither_read_nor_written_through(
    tmp_path: Path, name: str
) -> None:
    folder, outside = tmp_path / "pages", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("precious")
    (folder / name).symlink_to(outside)
    path = PageFactory().events("aten::a", 3).write(folder)
    exporter = Exporter(folder)
    with writer_of(path):
        exporter.look()
    assert exporter.events() == exporter.events() == {"aten::a": 3}
    assert outside.read_text() == "precious"


def test_totals_of_another_folder_are_not_read_through_a_link(tmp_path: Path) -> None:
    folder, other = tmp_path / "pages", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    PageFactory().events("aten::a", 3).write(other)
    Exporter(other).look()
    (folder / "totals.json").symlink_to(other / "totals.json")
    assert Exporter(folder).events() == {}


@pytest.mark.parametrize("name", ["totals.json", "armed.json"])
def test_a_fifo_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    PageFactory().events("aten::a", 3).write(tmp_path)
    assert Exporter(tmp_path).events() == {"aten::a": 3}


def test_what_is_carried_over_is_for_this_user_alone(tmp_path: Path) -> None:
    PageFactory().write(tmp_path)
    Exporter(tmp_path).look()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"totals.json": 0o600, "armed.json": 0o600}


def test_in_a_folder_shared_with_a_group_the_group_may_read_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o2750)
    PageFactory().write(tmp_path)
    Exporter(tmp_path).look()
    assert (tmp_path / "totals.json").stat().st_mode & 0o777 == 0o640


def test_what_a_process_left_that_died_while_it_made_its_page_goes_after_a_minute(
    tmp_path: Path,
) -> None:
    left = tmp_path / "1-2-3.tmp"
    left.write_bytes(bytes(1000))
    os.utime(left, (0, 0))  # as after a step of the clock: it is not asked
    exporter = Exporter(tmp_path)
    exporter.look()
    exporter.second += 59
    exporter.look()
    assert left.exists()
    exporter.second += 1
    exporter.look()
    assert not left.exists()


def test_files_that_are_no_pages_stay(tmp_path: Path) -> None:
    for name in ("bad.page", "notes.txt", "totals.json.old"):
        (tmp_path / name).write_text("x")
    exporter = Exporter(tmp_path)
    for _ in range(3):
        exporter.second += 100
        exporter.look()
    assert {"bad.page", "notes.txt", "totals.json.old"} <= {p.name for p in tmp_path.iterdir()}


def test_a_process_that_arms_tidies_a_crowded_folder_where_no_exporter_runs(
    tmp_path: Path,
) -> None:
    for _ in range(64):
        PageFactory().events("aten::a", 1).write(tmp_path)
    tidy(tmp_path)
    assert len(_pages(tmp_path)) == 64
    PageFactory().events("aten::a", 1).write(tmp_path)
    tidy(tmp_path)
    assert _pages(tmp_path) == []
    assert Exporter(tmp_path).events() == {"aten::a": 65}


def test_tidying_keeps_the_armed_time_that_was_shown(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    exporter.second = 150
    with writer_of(PageFactory(last_seen_ns=101 * SECOND_NS).write(tmp_path)):
        exporter.look()
    tidy(tmp_path, most=0)
    assert _pages(tmp_path) == []
    assert Exporter(tmp_path).look().armed_ns == 50 * SECOND_NS


def test_tidying_what_is_no_folder_raises_nothing(tmp_path: Path) -> None:
    tidy(tmp_path / "missing")


def test_pages_are_retired_although_nobody_scrapes(tmp_path: Path) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    collector = FallbackCollector(lambda: [tmp_path], Aggregator())
    with Housekeeping(collector, interval=0.01):
        wait_until(lambda: _pages(tmp_path) == [])


def test_housekeeping_leaves_alone_what_was_just_scraped(tmp_path: Path) -> None:
    collector = FallbackCollector(lambda: [tmp_path], Aggregator(), monotonic_ns=lambda: 5)
    list(collector.collect())
    PageFactory().events("aten::a", 3).write(tmp_path)
    collector.look_unless_seen_within(30)
    assert len(_pages(tmp_path)) == 1


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
