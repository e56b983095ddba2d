"""The one place that starts a process: a call of npu-smi that cannot hurt.

The tool can hang with the driver, leave children behind that hold its output
open, ignore SIGTERM, or print without end. A call therefore has a deadline, a
cap on what it may print, and a session of its own that is killed as a whole.
"""

from __future__ import annotations

import errno
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from npu_fallback_exporter.npu_smi.diagnosis import Diagnosis, FailureReason

DEFAULT_DEADLINE_SECONDS = 10.0
#: 64 chips with 8 processes each take 90 KB.
DEFAULT_OUTPUT_CAP_BYTES = 256 * 1024

_USUAL_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Where the driver package puts the libraries that npu-smi is linked to.
_DRIVER_LIBRARIES = (
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/lib64/common",
    "/usr/local/Ascend/driver/lib64/driver",
    "/usr/local/dcmi",
)
#: How soon a cancelled call is noticed.
_CANCEL_POLL_SECONDS = 0.25
#: How soon an exit is noticed where the kernel cannot tell it (no pidfd).
_EXIT_POLL_SECONDS = 0.05
_TERM_GRACE_SECONDS = 0.3
#: A child that outlives the tool may hold its output open; what the tool wrote is in
#: the pipe by then.
_DRAIN_SECONDS = 0.2
_KILL_WAIT_SECONDS = 0.5
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True)
class CallResult:
    """What a call printed and how it ended.

    ``failure`` is set if the call itself failed; whether the text has figures is
    for the parser to say. ``complete`` is False if the end of the text may be
    missing, so that its last line cannot be trusted.
    """

    stdout: str = ""
    stderr: str = ""
    exit_status: int | None = None
    complete: bool = False
    duration_seconds: float = 0.0
    failure: Diagnosis | None = None


class NpuSmiCommand:
    """Runs npu-smi, one call at a time.

    Args:
        path: the executable; a bare name (default ``npu-smi``) is looked up in PATH and the
            usual folders at every call, so that a later mount is found.
        deadline_seconds: after this long the whole process group is killed.
        output_cap_bytes: more than this is not read, and ends the call.
        environ: the environment to take PATH and LD_LIBRARY_PATH from.
        monotonic: clock of durations and deadlines, in seconds.

    Thread-safe: a second caller waits for the first.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        deadline_seconds: float = DEFAULT_DEADLINE_SECONDS,
        output_cap_bytes: int = DEFAULT_OUTPUT_CAP_BYTES,
        environ: Mapping[str, str] = os.environ,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = path or "npu-smi"
        self._deadline_seconds = deadline_seconds
        self._output_cap_bytes = output_cap_bytes
        self._environment = _environment(environ)
        self._monotonic = monotonic
        self._one_at_a_time = threading.Lock()
        self._cancelled = threading.Event()
        self._undead: subprocess.Popen[bytes] | None = None

    def cancel(self) -> None:
        """End a running call soon, and every later one at once; for the end of the program."""
        self._cancelled.set()

    def run(self, *arguments: str) -> CallResult:
        """Call npu-smi with ``arguments`` and wait for it, at most a second past the deadline.

        Never raises for anything that the tool or the system does.
        """
        with self._one_at_a_time:
            started = self._monotonic()
            if self._undead is not None and self._undead.poll() is None:
                # It sits in the driver where no signal reaches it. A second one
                # would sit beside it.
                return self._failed(
                    FailureReason.TIMEOUT, "an earlier call still hangs in the driver", started
                )
            self._undead = None
            path = self._executable()
            if path is None:
                words = f"{self._name} is not in PATH"
                return self._failed(FailureReason.MISSING, words, started)
            try:
                process = self._start(path, arguments)
            except OSError as error:
                return self._failed(_reason_of(error), f"{path}: {error.strerror}", started)
            return self._finish(process, started)

    def _executable(self) -> str | None:
        """Return the absolute path to call: it must not depend on the folder it is called in."""
        if os.sep in self._name:
            return str(Path(self._name).absolute())
        found = shutil.which(self._name, path=self._environment["PATH"])
        return None if found is None else str(Path(found).absolute())

    def _start(self, path: str, arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # nosec B603 # noqa: S603 - the path is the operator's, no shell reads it
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            cwd="/",
            start_new_session=True,
            close_fds=True,
        )

    def _finish(self, process: subprocess.Popen[bytes], started: float) -> CallResult:
        assert process.stdout is not None  # noqa: S101 - told to mypy: both are pipes
        assert process.stderr is not None  # noqa: S101
        output = _Output(process, (process.stdout, process.stderr), self._output_cap_bytes)
        failure: Diagnosis | None = None
        try:
            drained_by: float | None = None
            while not (output.ended and drained_by is not None):
                left = self._deadline_seconds - (self._monotonic() - started)
                output.read(max(0.0, left) if drained_by is None else _EXIT_POLL_SECONDS)
                now = self._monotonic()
                if self._cancelled.is_set():
                    failure = Diagnosis(FailureReason.TIMEOUT, "the exporter is stopping")
                elif output.over_cap:
                    break
                elif drained_by is None and _has_exited(process):
                    drained_by = now + _DRAIN_SECONDS
                elif now - started >= self._deadline_seconds:
                    seconds = f"{self._deadline_seconds:g} s"
                    failure = Diagnosis(FailureReason.TIMEOUT, f"no answer within {seconds}")
                if failure is not None or (drained_by is not None and now >= drained_by):
                    break
        finally:
            killed = not _has_exited(process)
            self._end(process)
            output.close()
        return CallResult(
            stdout=output.text(process.stdout),
            stderr=output.text(process.stderr),
            exit_status=None if killed else process.returncode,
            complete=not killed and output.ended,
            duration_seconds=self._monotonic() - started,
            failure=failure,
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of the group, and reap the process.

        The process is reaped last: until then its id cannot become another group's.
        """
        if not _has_exited(process):
            _signal_group(process.pid, signal.SIGTERM)
            _wait_for_exit(process, _TERM_GRACE_SECONDS)
        _signal_group(process.pid, signal.SIGKILL)
        try:
            process.wait(_KILL_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._undead = process

    def _failed(self, reason: FailureReason, words: str, started: float) -> CallResult:
        return CallResult(
            duration_seconds=self._monotonic() - started, failure=Diagnosis(reason, words)
        )


class _Output:
    """Reads both pipes without ever blocking, and keeps no more than the cap."""

    def __init__(
        self, process: subprocess.Popen[bytes], pipes: tuple[IO[bytes], ...], cap_bytes: int
    ) -> None:
        self._room = cap_bytes
        self._selector = selectors.DefaultSelector()
        self._read: dict[IO[bytes], bytearray] = {pipe: bytearray() for pipe in pipes}
        self._open = len(pipes)
        self.over_cap = False
        self._exit = _exit_descriptor(process.pid)
        if self._exit is not None:
            self._selector.register(self._exit, selectors.EVENT_READ)
        for pipe, buffer in self._read.items():
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, buffer)

    @property
    def ended(self) -> bool:
        """Whether both pipes are at their end."""
        return self._open == 0

    def read(self, seconds: float) -> None:
        """Wait for output or the exit, at most ``seconds`` and not long; take what is there."""
        longest = _EXIT_POLL_SECONDS if self._exit is None else _CANCEL_POLL_SECONDS
        for key, _ in self._selector.select(min(seconds, longest)):
            if key.fd == self._exit:
                # Told once: from here on only the pipes are waited for.
                self._selector.unregister(self._exit)
                continue
            buffer: bytearray = key.data
            try:
                chunk = os.read(key.fd, _CHUNK_BYTES)
            except BlockingIOError:
                continue
            if not chunk:
                self._selector.unregister(key.fileobj)
                self._open -= 1
                continue
            buffer += chunk[: self._room]
            self.over_cap = self.over_cap or len(chunk) > self._room
            self._room -= min(len(chunk), self._room)

    def text(self, pipe: IO[bytes]) -> str:
        return self._read[pipe].decode("utf-8", errors="replace")

    def close(self) -> None:
        self._selector.close()
        if self._exit is not None:
            os.close(self._exit)
        for pipe in self._read:
            pipe.close()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Everything that may change what the tool prints is fixed; LD_PRELOAD is not handed on."""
    libraries = [environ.get("LD_LIBRARY_PATH", ""), *_DRIVER_LIBRARIES]
    return {
        "PATH": f"{environ['PATH']}:{_USUAL_FOLDERS}" if environ.get("PATH") else _USUAL_FOLDERS,
        "LD_LIBRARY_PATH": ":".join(folder for folder in libraries if folder),
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
        "HOME": "/",
    }


def _reason_of(error: OSError) -> FailureReason:
    denied = error.errno in (errno.EACCES, errno.EPERM)
    return FailureReason.PERMISSION if denied else FailureReason.MISSING


def _exit_descriptor(pid: int) -> int | None:
    """Return a descriptor that is readable when the process has ended, or None."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        # An old kernel, a sandbox, or not Linux.
        return None


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended; it stays unreaped, which keeps its id."""
    if process.returncode is not None:
        return True
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, process.pid, options) is not None
    except ChildProcessError:
        # Something else in this program reaped it.
        return process.poll() is not None


def _wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not _has_exited(process) and time.monotonic() < until:
        time.sleep(0.005)


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # Gone already, or only members of another user are left.
        return
