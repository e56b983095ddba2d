"""Running a command as a shell would, with a helper process beside it.

The command stays in this process's group, session and terminal, so job control is untouched:
Ctrl-C and Ctrl-Z in a terminal reach it from there, once. Signals sent to this process by another
process are passed on to it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from npu_fallback_exporter.errors import NpuFallbackError
from npu_fallback_exporter.launch.children import GRACE_SECONDS

NOT_EXECUTABLE = 126
NOT_FOUND = 127

#: ``siginfo.si_code`` of a signal that the kernel sent, such as the terminal's Ctrl-C.
_FROM_KERNEL = 0x80

#: Not passed on: those of job control, which stop this process like any other; SIGCHLD, which is
#: about this process's children; and those that tell a process about a fault of its own.
_NOT_PASSED_ON = frozenset(
    {
        *(signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
        *(signal.SIGCONT, signal.SIGCHLD, signal.SIGPIPE),
        *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP),
        *(signal.SIGABRT, signal.SIGSYS),
    }
)

_WAITED_FOR = (frozenset(signal.valid_signals()) - _NOT_PASSED_ON) | {signal.SIGCHLD}


class CommandError(NpuFallbackError):
    """The command cannot be started; ``status`` is the shell's exit status for that."""

    def __init__(self, status: int, what: str, next_step: str) -> None:
        super().__init__(what, next_step)
        self.status = status


class Supervisor:
    """Runs one command to its end. Use it from the main thread of a process without others."""

    def __init__(self, on_helper_end: Callable[[int], None]) -> None:
        self._on_helper_end = on_helper_end
        self._helper: subprocess.Popen[str] | None = None
        self._mask: set[int] = set()

    def run(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        start_helper: Callable[[], subprocess.Popen[str]] | None = None,
    ) -> int:
        """Start ``command``, then the helper; return the command's status when both have ended.

        Raises:
            CommandError: the command cannot be started; the helper then is not either.
        """
        self._mask = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
        # Inherited as "ignored" it would take the children's statuses away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            process = self._start(command, environ)
            if start_helper is not None:
                self._helper = start_helper()
            try:
                return self._wait_for(process)
            finally:
                self._end_helper()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _start(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        try:
            return os.posix_spawnp(
                command[0],
                list(command),
                environ,
                setsigmask=self._mask,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores these two
            )
        except FileNotFoundError as error:
            raise CommandError(
                NOT_FOUND, f"{command[0]}: command not found", "check its name and PATH"
            ) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CommandError(
                NOT_EXECUTABLE,
                f"{command[0]}: cannot be executed ({reason})",
                "name a program, or its interpreter first (python server.py)",
            ) from error

    def _wait_for(self, process: int) -> int:
        while True:
            info = signal.sigwaitinfo(_WAITED_FOR)
            if info.si_signo == signal.SIGCHLD:
                status = self._reap(process)
                if status is not None:
                    return status
            elif info.si_code != _FROM_KERNEL or not _in_our_group(process):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, info.si_signo)

    def _reap(self, process: int) -> int | None:
        """Collect every child that has ended, orphans that a PID 1 inherits too."""
        result = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return result
            if pid == 0:
                return result
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                continue
            code = os.waitstatus_to_exitcode(status)
            if pid == process:
                result = 128 - code if code < 0 else code
            elif self._helper is not None and pid == self._helper.pid:
                self._helper.returncode, self._helper = code, None
                if result is None:
                    self._on_helper_end(code)

    def _end_helper(self) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        if self._helper is not None:
            self._helper.terminate()
        while self._helper is not None and (left := deadline - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, left)
            self._forget_if_ended()
        if self._helper is not None:
            self._helper.kill()
            self._helper.wait()

    def _forget_if_ended(self) -> None:
        if self._helper is not None and self._helper.poll() is not None:
            self._helper = None


def _in_our_group(process: int) -> bool:
    try:
        return os.getpgid(process) == os.getpgrp()
    except ProcessLookupError:
        return False
