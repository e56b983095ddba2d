"""Calling npu-smi cannot hurt, whatever it does."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from npu_fallback_exporter.npu_smi.command import CallResult, NpuSmiCommand
from npu_fallback_exporter.npu_smi.diagnosis import FailureReason
from npu_fallback_exporter.npu_smi.parser import diagnose
from tests.support.exporter_process import wait_until
from tests.support.npu_smi_standin import Reply, StandIn

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def call(stand_in: StandIn, reply: Reply, *, deadline_seconds: float = 20.0) -> CallResult:
    stand_in.reply({"info": reply})
    return NpuSmiCommand(str(stand_in.path), deadline_seconds=deadline_seconds).run("info")


def group_of(pid: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == pid and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (ProcessLookupError, psutil.Error):
            continue


def test_a_good_call_gives_its_text_and_status(stand_in: StandIn) -> None:
    result = call(stand_in, Reply("a table\n", "a warning\n", 3))
    assert (result.stdout, result.stderr, result.exit_status) == ("a table\n", "a warning\n", 3)
    assert result.complete
    assert result.failure is None


def test_an_error_on_stdout_is_read_with_its_status(stand_in: StandIn) -> None:
    result = call(stand_in, Reply("dcmi module initialize failed. ret is -8005\n", "", 187))
    assert result.exit_status == 187
    diagnosis = diagnose(result.stdout, result.exit_status)
    assert (diagnosis.reason, diagnosis.dcmi_code) == (FailureReason.DRIVER, -8005)


def test_a_call_that_hangs_ends_at_its_deadline(stand_in: StandIn) -> None:
    result = call(stand_in, Reply("half a ta", hang=True), deadline_seconds=3)
    assert result.failure is not None
    assert result.failure.reason is FailureReason.TIMEOUT
    assert not result.complete
    assert result.duration_seconds < 15
    wait_until(lambda: not list(group_of(stand_in.calls()[0][0])))


def test_a_call_that_ignores_sigterm_is_killed(stand_in: StandIn) -> None:
    result = call(stand_in, Reply(hang=True, ignore_term=True), deadline_seconds=3)
    assert result.failure is not None
    assert result.failure.reason is FailureReason.TIMEOUT
    wait_until(lambda: not list(group_of(stand_in.calls()[0][0])))


@pytest.mark.parametrize("ignore_term", [False, True])
def test_a_child_that_holds_the_pipe_delays_nothing_and_is_killed(
    stand_in: StandIn, ignore_term: bool
) -> None:
    reply = Reply("a table\n", child_holds_pipe=True, ignore_term=ignore_term)
    result = call(stand_in, reply)
    assert (result.stdout, result.exit_status) == ("a table\n", 0)
    assert result.failure is None
    assert result.duration_seconds < 10
    wait_until(lambda: not list(group_of(stand_in.calls()[0][0])))


def test_a_hundred_megabytes_are_not_kept(stand_in: StandIn) -> None:
    before = psutil.Process().memory_info().rss
    result = call(stand_in, Reply("a table\n", flood_bytes=100 * 1024 * 1024))
    assert result.stdout.startswith("a table\n")
    assert len(result.stdout) == 256 * 1024
    assert not result.complete
    assert psutil.Process().memory_info().rss - before < 20 * 1024 * 1024
    wait_until(lambda: not list(group_of(stand_in.calls()[0][0])))


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nprintf 'a\\377b'\n", encoding="utf-8")
    tool.chmod(0o755)
    assert NpuSmiCommand(str(tool)).run().stdout == "a\ufffdb"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, FailureReason.MISSING),
        (lambda path: path.write_text("#!/bin/sh\n"), FailureReason.PERMISSION),
        (lambda path: path.mkdir(), FailureReason.PERMISSION),
        (lambda path: (path.write_bytes(b"\x7fELF"), path.chmod(0o755)), FailureReason.MISSING),
    ],
    ids=["no file", "not executable", "a folder", "not a program"],
)
def test_what_cannot_be_started_has_a_reason(
    tmp_path: Path, make: object, reason: FailureReason
) -> None:
    assert callable(make)
    make(tmp_path / "npu-smi")
    failure = NpuSmiCommand(str(tmp_path / "npu-smi")).run("info").failure
    assert failure is not None
    assert failure.reason is reason


def test_npu_smi_is_looked_up_at_each_call(tmp_path: Path) -> None:
    command = NpuSmiCommand(environ={"PATH": str(tmp_path)})
    failure = command.run("info").failure
    assert failure is not None
    assert failure.reason is FailureReason.MISSING
    StandIn(tmp_path).reply({"info": Reply("a table\n")})
    assert command.run("info").stdout == "a table\n"


def test_a_relative_path_is_one_of_the_exporters_folder(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.reply({"info": Reply("a table\n")})
    monkeypatch.chdir(stand_in.path.parent)
    assert NpuSmiCommand("./npu-smi").run("info").stdout == "a table\n"


def test_the_environment_is_fixed_but_for_two_search_paths(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nenv\npwd\n", encoding="utf-8")
    tool.chmod(0o755)
    environ = {
        "PATH": "/usr/bin:/bin",
        "LD_LIBRARY_PATH": "/opt/driver",
        "LD_PRELOAD": "/opt/none.so",
        "LANG": "zh_CN.GBK",
        "NPU_FALLBACK_HOOK": "1",
    }
    lines = NpuSmiCommand(str(tool), environ=environ).run().stdout.split("\n")
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    assert found["LC_ALL"] == found["LANG"] == "C.UTF-8"
    assert found["LD_LIBRARY_PATH"].split(":")[0] == "/opt/driver"
    assert "/usr/local/Ascend/driver/lib64" in found["LD_LIBRARY_PATH"].split(":")
    assert found["PATH"].startswith("/usr/bin:/bin:")
    assert not {"LD_PRELOAD", "NPU_FALLBACK_HOOK"} & set(found)
    assert "/" in lines


def test_two_callers_never_have_two_calls_under_way(stand_in: StandIn) -> None:
    stand_in.reply({"info": Reply("a table\n", delay_seconds=0.3)})
    command = NpuSmiCommand(str(stand_in.path))
    threads = [threading.Thread(target=command.run, args=("info",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, sum(bool(list(group_of(pid))) for pid, _ in stand_in.calls()))
    assert most == 1
    assert len(stand_in.calls()) == 3


def test_a_running_call_ends_within_a_second_when_it_is_cancelled(stand_in: StandIn) -> None:
    stand_in.reply({"info": Reply(hang=True)})
    command = NpuSmiCommand(str(stand_in.path))
    thread = threading.Thread(target=command.run, args=("info",))
    thread.start()
    wait_until(lambda: bool(stand_in.calls()))
    started = time.monotonic()
    command.cancel()
    thread.join(1.0)
    assert not thread.is_alive()
    assert time.monotonic() - started < 1.0


def test_without_pidfd_it_works_the_same(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npu_fallback_exporter.npu_smi.command._exit_descriptor", lambda pid: None)
    assert call(stand_in, Reply("a table\n")).complete
    result = call(stand_in, Reply("a table\n", child_holds_pipe=True))
    assert (result.stdout, result.failure) == ("a table\n", None)
    assert call(stand_in, Reply(hang=True), deadline_seconds=0.3).failure is not None


def test_no_second_call_while_one_cannot_be_killed(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that sits in the driver gets no signal, as if none had been sent.
    monkeypatch.setattr(
        "npu_fallback_exporter.npu_smi.command._signal_group", lambda group, number: None
    )
    command = NpuSmiCommand(str(stand_in.path), deadline_seconds=0.3)
    stand_in.reply({"info": Reply(hang=True)})
    command.run("info")
    second = command.run("info")
    assert second.failure is not None
    assert "hangs" in second.failure.words
    ((pid, _),) = stand_in.calls()
    os.killpg(pid, signal.SIGKILL)
    stand_in.reply({"info": Reply("a table\n")})
    wait_until(lambda: command.run("info").stdout == "a table\n")


def test_no_descriptor_and_no_zombie_is_left_behind(stand_in: StandIn) -> None:
    me = psutil.Process()
    call(stand_in, Reply("a table\n"))
    descriptors = me.num_fds()
    for reply in (Reply("x"), Reply(hang=True), Reply(child_holds_pipe=True)):
        call(stand_in, reply, deadline_seconds=0.3)
    assert me.num_fds() == descriptors
    assert not [child for child in me.children() if child.status() == psutil.STATUS_ZOMBIE]
