"""Workers that are killed, exporters that are restarted, scrapes all the while: nothing is lost.

Every worker writes the number of its events to a file of its own *after* each event, so the totals
must be at least the sum of these files, and at most one event per kill above it.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.support.exporter_process import Exporter, serving

#: Start again at 0 with the exporter, as their HELP says.
_OF_THE_EXPORTER = ("process_", "npu_fallback_pages_skipped_total", "npu_server_cpu_seconds_total")
_SAMPLE = re.compile(r"^([a-z_]+)(\{.*\})? (\S+)$", re.MULTILINE)
_TYPE = re.compile(r"^# TYPE (\S+) (counter|histogram)$", re.MULTILINE)
_EVENTS = "npu_fallback_kind_events_total"


@dataclass
class Watch:
    """Scrapes one exporter after another and notes what must not happen."""

    scrapes: int = 0
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)
    events: float = 0.0
    seconds: list[float] = field(default_factory=list)
    _before: dict[str, float] = field(default_factory=dict)

    def look(self, exporter: Exporter) -> str:
        """Scrape once."""
        begin = time.monotonic()
        try:
            with urllib.request.urlopen(exporter.url, timeout=30) as answer:
                text: str = answer.read().decode()
        except OSError as error:
            self.wrong.append(f"scrape {self.scrapes} failed: {error}")
            return ""
        self.seconds.append(time.monotonic() - begin)
        self.scrapes += 1
        self._compare(text)
        return text

    def _compare(self, text: str) -> None:
        counters = {name for name, _ in _TYPE.findall(text)}
        now: dict[str, float] = {}
        for name, labels, value in _SAMPLE.findall(text):
            family = re.sub("_(bucket|count|sum)$", "", name)
            if {name, family} & counters and not name.startswith(_OF_THE_EXPORTER):
                now[name + labels] = float(value)
        for series, value in self._before.items():
            if now.get(series, -1.0) < value:
                self.wrong.append(f"{series} went from {value} to {now.get(series)}")
        for series in ('npu_fallback_exporter_collector_success{collector="fallback"} 0.0',):
            if series in text:
                self.wrong.append("the collector failed")
        self._before = now
        self.events = sum(value for series, value in now.items() if series.startswith(_EVENTS))


@dataclass
class Outcome:
    """What a run came to."""

    acknowledged: int
    kills: int
    totals: list[float]
    scrapes: int
    median_seconds: float
    slowest_seconds: float
    files_left: list[str]
    wrong: list[str]

    def complaints(self) -> list[str]:
        """What should not have happened; empty: nothing."""
        wrong = list(self.wrong)
        for total in self.totals:
            if not self.acknowledged <= total <= self.acknowledged + self.kills:
                wrong.append(
                    f"total {total:.0f} is not in {self.acknowledged} "
                    f"to {self.acknowledged + self.kills}"
                )
        return wrong

    def __str__(self) -> str:
        over = ", ".join(f"{total - self.acknowledged:+.0f}" for total in self.totals)
        lines = [
            f"acknowledged events: {self.acknowledged}; kills: {self.kills}",
            f"totals of the exporters, against that: {over}",
            f"scrapes: {self.scrapes}, median {self.median_seconds * 1e3:.1f} ms, "
            f"slowest {self.slowest_seconds * 1e3:.1f} ms",
            f"files left in the pages folder: {len(self.files_left)}",
            *(self.complaints()[:20] or ["nothing was lost, and nothing fell"]),
        ]
        return "\n".join(lines)


class Torture:
    """One run.

    Args:
        start: starts a worker that counts in the pages folder and acknowledges in a file.
        folder: an empty folder.
        workers: how many at a time.
        kill_every: seconds between two kills.
        seconds: how long.
        restarts: of the first exporter; a second one lives through it all.
        scrapes_per_second: of each exporter.
        seed: of what is random.
    """

    def __init__(
        self,
        start: Callable[[Path, Path], subprocess.Popen[bytes]],
        folder: Path,
        *,
        workers: int,
        kill_every: float,
        seconds: float,
        restarts: int,
        scrapes_per_second: float = 20.0,
        seed: int = 0,
    ) -> None:
        self._start = start
        self._pages = folder / "pages"
        self._acknowledged = folder / "acknowledged"
        self._pages.mkdir(mode=0o700)
        self._acknowledged.mkdir()
        self._workers = workers
        self._kill_every = kill_every
        self._seconds = seconds
        self._restarts = restarts
        self._pause = 1 / scrapes_per_second
        self._random = random.Random(seed)
        self._running: list[subprocess.Popen[bytes]] = []
        self._started = 0
        self._kills = 0

    def run(self) -> Outcome:
        """Run to the end."""
        restarted, steady = Watch(), Watch()
        stop = threading.Event()
        with serving("--no-npu-smi", pages=self._pages) as second:
            watcher = threading.Thread(
                target=self._scrape_until, args=(steady, second, stop.is_set)
            )
            killer = threading.Thread(target=self._kill_workers, args=(stop,))
            self._running = [self._new_worker() for _ in range(self._workers)]
            watcher.start()
            killer.start()
            try:
                span = self._seconds / (self._restarts + 1)
                begin = time.monotonic()
                for index in range(self._restarts + 1):
                    until = begin + span * (index + 1)
                    with serving("--no-npu-smi", pages=self._pages) as first:
                        self._scrape_until(restarted, first, partial(_is_past, until))
                        if index % 2:  # every second one without a chance to say goodbye
                            first.process.send_signal(signal.SIGKILL)
            finally:
                stop.set()
                killer.join()
                watcher.join()
                for worker in self._running:
                    self._kill(worker)
            with serving("--no-npu-smi", pages=self._pages) as last:
                for _ in range(3):
                    restarted.look(last)
                    steady.look(second)
        seconds = sorted(restarted.seconds + steady.seconds)
        return Outcome(
            acknowledged=sum(
                int.from_bytes(path.read_bytes(), "little") for path in self._acknowledged.iterdir()
            ),
            kills=self._kills,
            totals=[restarted.events, steady.events],
            scrapes=restarted.scrapes + steady.scrapes,
            median_seconds=seconds[len(seconds) // 2],
            slowest_seconds=seconds[-1],
            files_left=sorted(path.name for path in self._pages.iterdir()),
            wrong=restarted.wrong + steady.wrong,
        )

    def _new_worker(self) -> subprocess.Popen[bytes]:
        self._started += 1
        return self._start(self._pages, self._acknowledged / str(self._started))

    def _kill_workers(self, stop: threading.Event) -> None:
        while not stop.wait(self._kill_every):
            index = self._random.randrange(len(self._running))
            self._kill(self._running[index])
            self._running[index] = self._new_worker()

    def _kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        self._kills += 1

    def _scrape_until(self, watch: Watch, exporter: Exporter, ended: Callable[[], bool]) -> None:
        while not ended():
            begin = time.monotonic()
            watch.look(exporter)
            time.sleep(max(0.0, begin + self._pause - time.monotonic()))


def _is_past(moment: float) -> bool:
    return time.monotonic() >= moment


def run_from_command_line(
    description: str,
    start: Callable[[Path, Path], subprocess.Popen[bytes]],
    *,
    workers: int,
    kill_every: float,
    restarts: int,
) -> None:
    """Run as the flags say, print what came of it, and exit with 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--workers", type=int, default=workers)
    parser.add_argument("--kill-every", type=float, default=kill_every, metavar="SECONDS")
    parser.add_argument("--restarts", type=int, default=restarts, help="of one of two exporters")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        outcome = Torture(start, Path(folder), **vars(args)).run()
    print(outcome)
    sys.exit(1 if outcome.complaints() else 0)
