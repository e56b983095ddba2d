"""``run -- CMD``: the command cannot tell that it is not started by the shell itself."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import psutil
import pytest

from npu_fallback_exporter.instrument.hook_path import source_hash

DEADLINE_SECONDS = 60.0
RUN = [sys.executable, "-m", "npu_fallback_exporter", "run"]
ANY_PORT = ["--web.listen-address", "127.0.0.1:0"]

#: Says when it is ready, then which signals it gets, and ends at SIGTERM.
WATCHER = """
import signal, sys
watched = {signal.SIGTERM, *(signal.Signals[name] for name in sys.argv[1:])}
signal.pthread_sigmask(signal.SIG_BLOCK, watched)
print("ready", flush=True)
while True:
    number = signal.sigwait(watched)
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(3)
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Nothing to compile, and pages of its own."""
    return {**os.environ, "NPU_FALLBACK_HOOK": "0", "NPU_FALLBACK_DIR": str(tmp_path)}


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(environ: dict[str, str]) -> Iterator[Start]:
    """Start ``run`` with pipes; whatever is left of it is killed at the end."""
    started: list[subprocess.Popen[str]] = []
    family: dict[int, psutil.Process] = {}

    def start(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*before, *RUN, *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    family[child.pid] = child
            process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for child in family.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def run(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        input="from stdin",
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "not within the deadline"
        os.sched_yield()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def sidecars_of(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child for child in psutil.Process(pid).children() if "serve" in child.cmdline()]
    return []


def test_the_status_of_the_command_is_returned(environ: dict[str, str]) -> None:
    assert run(environ, "--no-serve", "--", "sh", "-c", "exit 7").returncode == 7


def test_a_command_killed_by_a_signal_gives_128_and_its_number(environ: dict[str, str]) -> None:
    assert run(environ, "--no-serve", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_input_and_output_are_those_of_the_command(environ: dict[str, str]) -> None:
    done = run(environ, "--no-serve", "--", "sh", "-c", "cat; echo to stderr >&2")
    assert (done.stdout, done.stderr) == ("from stdin", "to stderr\n")


def test_flags_after_the_command_are_the_commands(environ: dict[str, str]) -> None:
    assert run(environ, "--no-serve", "--", "echo", "--no-serve", "--").stdout == "--no-serve --\n"
    assert run(environ, "--no-serve", "echo", "--no-serve").stdout == "--no-serve\n"


@pytest.mark.parametrize(
    ("command", "status"), [("no-such-command-here", 127), ("/etc/passwd", 126), ("/etc", 126)]
)
def test_a_command_that_cannot_start_is_one_line(
    environ: dict[str, str], command: str, status: int
) -> None:
    done = run(environ, "--", command)
    assert done.returncode == status
    assert re.fullmatch(rf"npu-fallback-exporter: {command}: .+: .+\n", done.stderr)


def test_no_command_is_a_usage_error_in_one_line(environ: dict[str, str]) -> None:
    done = run(environ, "--no-serve")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_the_hook_is_armed_unless_the_user_said_otherwise(
    environ: dict[str, str], tmp_path: Path
) -> None:
    torch = importlib.metadata.version("torch").split("+")[0]
    (tmp_path / f"hook-torch{torch}-{platform.machine()}-{source_hash()}.so").touch()
    environ["NPU_FALLBACK_HOOK_PATH"] = str(tmp_path)
    show = ["--no-serve", "--", "sh", "-c", "echo $NPU_FALLBACK_HOOK"]
    assert run(environ, *show).stdout == "0\n"
    del environ["NPU_FALLBACK_HOOK"]
    assert run(environ, *show).stdout == "1\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGQUIT"])
def test_signals_of_other_processes_are_passed_on(start: Start, name: str) -> None:
    process = start("--no-serve", "--", sys.executable, "-c", WATCHER, name)
    assert line_of(process) == "ready"
    process.send_signal(signal.Signals[name])
    assert line_of(process) == name
    process.terminate()
    assert line_of(process) == "SIGTERM"
    assert process.wait(DEADLINE_SECONDS) == 3


def test_a_ctrl_c_in_a_terminal_reaches_the_command_once(environ: dict[str, str]) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        command = [*RUN, *ANY_PORT, "--", sys.executable, "-c", WATCHER, "SIGINT"]
        os.execve(sys.executable, command, environ)
    shown = ""

    def shows(text: str) -> bool:
        nonlocal shown
        if select.select([terminal], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):  # the terminal's other side is closed
                shown += os.read(terminal, 4096).decode()
        return text in shown

    try:
        until(lambda: shows("ready") and shows("listening on"))
        os.write(terminal, b"\x03")
        until(lambda: shows("SIGINT"))
        os.kill(pid, signal.SIGTERM)  # behind any SIGINT that was passed on as well
        until(lambda: shows("SIGTERM"))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        assert shown.count("SIGINT") == 1
    finally:
        os.close(terminal)


def test_the_sidecar_answers_beside_the_command_and_ends_with_it(start: Start) -> None:
    process = start(*ANY_PORT, "--", sys.executable, "-c", WATCHER)
    assert line_of(process) == "ready"
    assert process.stderr is not None
    until(lambda: process.stderr and "listening on http://127.0.0.1:" in process.stderr.readline())
    (sidecar,) = sidecars_of(process.pid)
    process.terminate()
    assert process.wait(DEADLINE_SECONDS) == 3
    assert not sidecar.is_running()


def test_the_command_runs_on_when_the_port_is_taken(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = start("--web.listen-address", address, "--", sys.executable, "-c", WATCHER)
        assert process.stderr is not None
        lines = takewhile(lambda line: "runs on" not in line, iter(process.stderr.readline, ""))
        assert sum(address in line for line in lines) == 1
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 3


def test_a_second_run_with_the_same_port_takes_over_when_the_first_ends(start: Start) -> None:
    first = start(*ANY_PORT, "--", sys.executable, "-c", WATCHER)
    assert line_of(first) == "ready"
    assert first.stderr is not None
    said = next(line for line in iter(first.stderr.readline, "") if "listening on" in line)
    address = said.split("/")[2]
    second = start("--web.listen-address", address, "--", sys.executable, "-c", WATCHER)
    assert line_of(second) == "ready"
    assert second.stderr is not None
    assert f"another exporter listens on {address}: standing by" in second.stderr.readline()
    first.terminate()
    assert first.wait(DEADLINE_SECONDS) == 3
    until(lambda: second.stderr and "listening on" in second.stderr.readline())
    second.terminate()
    assert second.wait(DEADLINE_SECONDS) == 3


def test_the_sidecar_has_the_web_configuration_that_run_was_given(
    start: Start, tmp_path: Path
) -> None:
    flags = (*ANY_PORT, "--web.config.file", str(tmp_path / "none.yml"))
    process = start(*flags, "--", sys.executable, "-c", WATCHER)
    assert process.stderr is not None
    assert f"{tmp_path}/none.yml: cannot read" in process.stderr.readline()
    assert "the sidecar ended with status 1" in process.stderr.readline()
    process.terminate()
    assert process.wait(DEADLINE_SECONDS) == 3


def test_the_sidecar_ends_when_run_is_killed_and_the_server_does_not(start: Start) -> None:
    process = start(*ANY_PORT, "--", sys.executable, "-c", WATCHER, "SIGUSR1")
    assert line_of(process) == "ready"
    until(lambda: sidecars_of(process.pid))
    (sidecar,) = sidecars_of(process.pid)
    (server,) = (c for c in psutil.Process(process.pid).children() if c != sidecar)
    process.kill()
    until(lambda: not sidecar.is_running() or sidecar.status() == psutil.STATUS_ZOMBIE)
    server.send_signal(signal.SIGUSR1)
    assert line_of(process) == "SIGUSR1"
    server.terminate()
    assert line_of(process) == "SIGTERM"


#: Leaves an orphan that ends at once, and waits until PID 1 has collected it.
ORPHAN = """
import os, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    if orphan == 0:
        os._exit(0)
    os.write(writer, str(orphan).encode())
    os._exit(0)
os.wait()
orphan = os.read(reader, 20).decode()
deadline = time.monotonic() + 30
while os.path.exists("/proc/" + orphan):
    if time.monotonic() > deadline:
        sys.exit("it is still there")
"""


def test_as_pid_1_it_collects_orphans_and_obeys_sigterm(start: Start) -> None:
    new_pids = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if subprocess.run([*new_pids, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("may not make a pid namespace")
    process = start("--no-serve", "--", sys.executable, "-c", ORPHAN + WATCHER, before=new_pids)
    assert line_of(process) == "ready"
    (pid_1,) = psutil.Process(process.pid).children()
    pid_1.terminate()
    assert line_of(process) == "SIGTERM"
    assert process.wait(DEADLINE_SECONDS) == 3
