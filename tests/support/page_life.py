"""Processes that drive the native page writer, without torch, while things happen to their page."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .native import driver

_DEADLINE = 60


def command(*arguments: str | Path | int) -> list[str]:
    """The command line of one command of ``tests/native/page_life.cpp``."""
    return [str(driver(name="page_life")), *map(str, arguments)]


def run(*arguments: str | Path | int) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=_DEADLINE, check=False
    )


@dataclass
class Writer:
    """A process that has a page and waits for a line."""

    process: subprocess.Popen[str]
    page: Path

    def go_on(self) -> tuple[list[str], str]:
        """Give it its line; return what it printed until its end, and its stderr."""
        out, err = self.process.communicate("\n", timeout=_DEADLINE)
        return out.splitlines(), err

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(_DEADLINE)


@contextmanager
def writing(*arguments: str | Path | int, prefix: tuple[str, ...] = ()) -> Iterator[Writer]:
    """Start a command that prints the path of its page and then waits; `prefix` runs it."""
    with subprocess.Popen(
        [*prefix, *command(*arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Writer(process, Path(process.stdout.readline().strip()))
        finally:
            process.kill()
