"""Kills, restarts and scrapes at once: nothing is lost, nothing falls. Long: benchmarks/soak."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.soak.pages import start_worker
from benchmarks.soak.torture import Torture
from npu_fallback_exporter.pages.model import SlotKey
from npu_fallback_exporter.pages.page import read_page

from .support.exporter_process import serving, wait_until
from .support.in_process_exporter import InProcessExporter
from .support.page_factory import PageFactory
from .support.page_life import command, run, writing


def test_no_event_is_lost_under_kills_restarts_and_scrapes(tmp_path: Path) -> None:
    outcome = Torture(
        start_worker, tmp_path, workers=8, kill_every=0.05, seconds=5, restarts=2
    ).run()
    assert outcome.complaints() == []
    assert outcome.kills > 20
    assert outcome.scrapes > 20


def test_five_hundred_short_lived_workers_leave_a_bounded_folder_and_exact_sums(
    tmp_path: Path,
) -> None:
    exporter = InProcessExporter(tmp_path)
    sizes, most_files = set(), 0
    for _ in range(20):
        workers = [
            subprocess.Popen(command("worker", tmp_path, 8, 4, 0), stdout=subprocess.DEVNULL)
            for _ in range(25)
        ]
        assert [worker.wait(60) for worker in workers] == [0] * 25
        most_files = max(most_files, len(list(tmp_path.iterdir())))
        totals = exporter.look()
        sizes.add((len(totals.slots), len(totals.kind_events)))
    assert exporter.events() == {f"test::op{op}": 1000 for op in range(4)}
    assert exporter.totals.processes_finished == 500
    assert sizes == {(4, 2)}
    assert most_files <= 25 + 2
    assert {path.name for path in tmp_path.iterdir()} == {"totals.json", "armed.json"}
    assert (tmp_path / "totals.json").stat().st_size < 64 << 10


def test_restarting_workers_twenty_times_adds_no_series(tmp_path: Path) -> None:
    exporter = InProcessExporter(tmp_path)
    series = set()
    for _ in range(20):
        for npu in (0, 1):
            run("worker", tmp_path, 8, 4, npu)
        exporter.look()
        series.add(exporter.series())
    assert len(series) == 1
    assert exporter.events() == {f"test::op{op}": 80 for op in range(4)}


def test_a_scrape_after_five_hundred_workers_costs_no_more_than_after_five(tmp_path: Path) -> None:
    """Counted in files that are opened: time would depend on the machine."""
    opened = []
    for workers in (5, 500):
        folder = tmp_path / str(workers)
        folder.mkdir()
        exporter = InProcessExporter(folder)
        for _ in range(workers):
            PageFactory().events("aten::a", 1).write(folder)
        for _ in range(3):  # a scrape retires a limited number
            exporter.look()
        opened.append(len(list(folder.iterdir())))
    assert opened == [2, 2]


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and util-linux"
)
def test_two_writers_with_one_pid_in_two_namespaces_do_not_mix(tmp_path: Path) -> None:
    for events in (3, 5):
        arguments = command("worker", tmp_path, events, 1, 0)
        subprocess.run(["unshare", "--pid", "--fork", *arguments], check=True, timeout=60)
    pages = [read_page(str(path)).page for path in tmp_path.glob("*.page")]
    assert [page.pid for page in pages] == [1, 1]
    exporter = InProcessExporter(tmp_path)
    assert exporter.events() == {"test::op0": 8}
    assert exporter.totals.processes_finished == 2


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and util-linux"
)
def test_a_writer_in_another_pid_namespace_is_seen_to_live_and_to_end(tmp_path: Path) -> None:
    exporter = InProcessExporter(tmp_path)
    prefix = ("unshare", "--pid", "--fork", "--kill-child")
    with writing("endless", tmp_path, 1, prefix=prefix) as writer:
        assert read_page(str(writer.page)).page.pid == 1
        assert exporter.look().live.processes == 1
        writer.kill()
        wait_until(lambda: exporter.look().live.processes == 0)
    assert exporter.totals.processes_finished == 1


def test_bad_pages_cost_themselves_and_the_scrape_answers(tmp_path: Path) -> None:
    run("worker", tmp_path, 7, 1, 0)
    (tmp_path / "empty.page").touch()
    (tmp_path / "cut.page").write_bytes(PageFactory().data[:5000])
    (tmp_path / "random.page").write_bytes(os.urandom(500_000))
    PageFactory(layout_version=2).write(tmp_path, "newer.page")
    with serving("--no-npu-smi", pages=tmp_path) as exporter:
        values = exporter.values()
    skipped = {
        dict(labels)["reason"]: value
        for (name, labels), value in values.items()
        if name == "npu_fallback_pages_skipped_total" and value
    }
    assert skipped == {"empty": 1, "truncated": 1, "magic": 1, "version": 1}
    events = ("npu_fallback_kind_events_total", (("kind", "dispatcher"), ("npu", "logical-0")))
    assert values[events] == 7


def test_fields_of_a_slot_agree_within_the_threads_that_count(tmp_path: Path) -> None:
    threads = 8
    with writing("endless", tmp_path, threads) as writer:
        until = time.monotonic() + 1.0
        seen = []
        while time.monotonic() < until:
            slot = read_page(str(writer.page)).page.slots.get(SlotKey("test::op0", "dispatcher", 0))
            if slot is not None:
                seen.append(slot)
        writer.go_on()
    assert len(seen) > 100
    assert seen[-1].events > 1000
    for slot in seen:
        # One read takes in a slot as it is, field by field: each thread may be between two fields.
        events = slot.events
        for field in (
            slot.bytes_d2h / 10,
            slot.bytes_h2d,
            slot.duration_ns / 20_000,
            slot.bucket_30us,
        ):
            assert abs(field - events) <= threads
        assert (slot.bucket_10us, slot.blocked, slot.errors) == (0, 0, 0)
    assert all(a.events <= b.events for a, b in pairwise(seen))


def test_many_servers_and_exporters_share_one_folder(tmp_path: Path) -> None:
    with writing("endless", tmp_path, 1) as first, writing("endless", tmp_path, 1) as second:
        exporters = [InProcessExporter(tmp_path) for _ in range(3)]
        for exporter in exporters:
            exporter.look()
        assert [one.totals.live.processes for one in exporters] == [2, 2, 2]
        first.go_on()
        second.kill()
    run("worker", tmp_path, 5, 1, 0)
    for exporter in exporters:
        exporter.look()
    totals = [exporter.events()["test::op0"] for exporter in exporters]
    assert totals == [InProcessExporter(tmp_path).events()["test::op0"]] * 3
    assert [one.totals.processes_finished for one in exporters] == [3, 3, 3]
