"""A real ``serve`` in a process of its own, for tests that scrape it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_LISTENING = re.compile(r"listening on (https?://\S+/metrics)")
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Exporter:
    """A running exporter; ``log`` grows while it runs."""

    process: subprocess.Popen[str]
    url: str = ""
    log: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def scrape(self) -> tuple[str, float]:
        """The text of one scrape, and the seconds that it took."""
        started = time.monotonic()
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            text: str = answer.read().decode()
        return text, time.monotonic() - started

    def values(self) -> dict[Key, float]:
        """Samples of one scrape, by name and sorted labels."""
        return values_of(self.scrape()[0])

    def value(self, name: str, **labels: str) -> float | None:
        return self.values().get((name, tuple(sorted(labels.items()))))


def values_of(text: str) -> dict[Key, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@contextmanager
def serving(*arguments: str, pages: Path, before: tuple[str, ...] = ()) -> Iterator[Exporter]:
    """Run ``serve`` on a free port of loopback until the block ends.

    Args:
        arguments: flags; a later one wins over an earlier one.
        pages: folder of pages.
        before: words in front of the command, such as ``("env", "A=b")``.
    """
    command = [*before, sys.executable, "-m", "npu_fallback_exporter", "serve"]
    command += ["--web.listen-address", "127.0.0.1:0", "--pages", str(pages), *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    exporter = Exporter(process)
    listening = threading.Event()

    def read_log() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            exporter.log.append(line)
            found = _LISTENING.search(line)
            if found is not None:
                exporter.url = found[1]
                listening.set()
        listening.set()

    reader = threading.Thread(target=read_log)
    reader.start()
    try:
        listening.wait(30)
        assert exporter.url, "".join(exporter.log)
        yield exporter
    finally:
        process.terminate()
        try:
            process.wait(10)
        finally:
            process.kill()
            process.wait()
            reader.join()
            assert process.stderr is not None
            process.stderr.close()


def wait_until(condition: Callable[[], object], seconds: float = 30.0, why: str = "") -> None:
    """Ask until it holds; fails after so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, why or "deadline"
        time.sleep(0.02)
