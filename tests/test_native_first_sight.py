"""Asking for call sites, notes, summaries and forbidding blocks, without torch and Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_fallback_exporter.pages.notes import CallSite
from npu_fallback_exporter.pages.page import read_notes
from tests.support.native import FLAGS, run_driver


def run(*arguments: str | Path, flavour: str = "plain") -> list[str]:
    return run_driver(*arguments, flavour=flavour, name="first_sight")


@pytest.mark.parametrize("flavour", FLAGS)
def test_call_sites_are_asked_for_on_another_thread_while_the_caller_waits(flavour: str) -> None:
    assert run("answers", flavour=flavour) == [
        "none []",
        "new [test::op, another thread, waits]",
        "none []",  # asked while answering
        "known []",
        "none []",
    ]


@pytest.mark.parametrize("flavour", FLAGS)
def test_a_caller_runs_on_when_the_answer_does_not_come(flavour: str) -> None:
    assert run("late", flavour=flavour) == ["too late []", "caller waits: 0"]


@pytest.mark.parametrize("flavour", ["thread", "address"])
def test_many_threads_may_ask_while_the_callback_comes_and_goes(flavour: str) -> None:
    assert run("crowd", "8", "200", flavour=flavour) == ["ended"]


@pytest.mark.parametrize("flavour", FLAGS)
def test_notes_of_many_threads_are_all_there(tmp_path: Path, flavour: str) -> None:
    (path,) = run("notes", tmp_path, "8", "20", "101", "0", flavour=flavour)
    sites = read_notes(path).call_sites["test::op"]
    times = {thread * 1_000_000 + note for thread in range(8) for note in range(20)}
    assert {site.first_seen_unix_ns for site in sites} == times
    assert sites[0] == CallSite(None, (), sites[0].first_seen_unix_ns)


def test_notes_that_find_no_room_are_counted(tmp_path: Path) -> None:
    (path,) = run("notes", tmp_path, "1", "130", "1000", "0")
    notes = read_notes(path)
    assert len(notes.call_sites["test::op"]) == 128  # of 1024 bytes each
    assert notes.dropped == 2


def test_further_notes_leave_room_for_operators_that_come_later(tmp_path: Path) -> None:
    (path,) = run("notes", tmp_path, "1", "130", "1000", "32768")
    assert len(read_notes(path).call_sites["test::op"]) == 96


def test_a_summary_comes_after_a_minute_and_again_when_the_rate_has_changed(
    tmp_path: Path,
) -> None:
    lines = run("summary", tmp_path, "1", "61", "61", "610", "600", "6")
    assert lines == [
        "npu-fallback-exporter: 1 operator calls ran on the CPU in the last 61 s (0.0164 per "
        "second), most of them test::seldom (1)",
        "npu-fallback-exporter: 61 operator calls ran on the CPU in the last 61 s (1 per second, "
        "before 0.0164), most of them test::often (45)",
        "npu-fallback-exporter: 610 operator calls ran on the CPU in the last 61 s (10 per second, "
        "before 1), most of them test::often (457)",
    ]


@pytest.mark.parametrize(
    ("blocks", "verdict"),
    [
        ([], "refused"),
        (["aten::*"], "allowed"),
        (["aten::a", "aten::b*"], "allowed"),
        (["aten::bc", "-", "aten::*"], "allowed"),
        (["aten::a", "-", "aten::*"], "refused"),
        (["aten::*", "-"], "refused"),
    ],
)
def test_every_block_around_a_thread_must_allow(blocks: list[str], verdict: str) -> None:
    assert run("blocks", "aten::bc", *blocks) == [verdict, "closed none left"]
