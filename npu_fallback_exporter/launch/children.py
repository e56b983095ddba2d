"""Child processes that end when this process does, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

#: How long a child may take to end by itself.
GRACE_SECONDS = 5.0


def start_bound(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdout: int | IO[str] | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[str] | IO[bytes] | None = None,
) -> subprocess.Popen[str]:
    """Start ``command`` in a process group of its own, bound to the life of this process.

    It gets no input, and SIGTERM when this process ends, by SIGKILL too. The terminal's Ctrl-C
    does not reach it: whoever started it ends it.
    """
    return subprocess.Popen(  # nosec B603 # noqa: S603 - the caller's command, without a shell
        list(command),
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=_bind_to(os.getpid()),
    )


def stop(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End the processes: ask all of them, then kill those that are still there."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _bind_to(parent: int) -> Callable[[], None]:
    def bind() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if os.getppid() != parent:  # it ended before the line above
            os._exit(1)

    return bind
