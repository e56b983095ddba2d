"""What a scrape costs, with prometheus_client's multiprocess mode beside it.

Run: ``python -m benchmarks.scrape``. Live pages on a tmpfs, held by this process; a real exporter
in a process of its own, scraped over HTTP on loopback while the pages change. Beside it, in turns,
the same series over the same number of processes in prometheus_client's multiprocess mode, which is
what a Python server would otherwise use.

Wall time suffers from whatever else runs on the machine, so CPU time is given as well. Required: 64
pages of 128 ops in under 150 ms, 8 of 16 in under 15 ms (medians), under 80 MiB resident, under
1.5 % of a core at one scrape in 15 s, at least 5 times less than multiprocess mode.
"""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.paired import machine
from npu_fallback_exporter.pages import layout
from tests.support.exporter_process import Exporter, serving
from tests.support.page_factory import PageFactory, writer_of

NPUS = 8
SCRAPE_INTERVAL_SECONDS = 15.0


@dataclass(frozen=True)
class Figures:
    """Medians over the scrapes; seconds and bytes."""

    wall: float
    cpu: float
    series: int
    resident: int = 0


class LivePages:
    """Pages of live processes that count between two scrapes."""

    def __init__(self, folder: Path, pages: int, ops: int, stack: ExitStack) -> None:
        self._maps: list[mmap.mmap] = []
        for number in range(pages):
            chips = (1 << NPUS) - 1
            page = PageFactory(davinci_devices=(chips, 0, 0, 0), created_unix_ns=time.time_ns())
            for op in range(ops):
                page.events(f"aten::operator_{op}.out", 1 + op, npu=number % NPUS)
            page.transfer("d2h", "fallback", 4096, 1, npu=number % NPUS).shard(0, 1000, 10)
            path = page.write(folder)
            stack.enter_context(writer_of(path))
            with path.open("r+b") as file:
                self._maps.append(mmap.mmap(file.fileno(), layout.PAGE_BYTES))
        self._ops = ops

    def count(self) -> None:
        """One more event of every op in every process."""
        start = layout.PAGE.offsets["slots"]
        bucket = layout.SLOT.offsets["duration_buckets"] + 4 * 8
        for memory in self._maps:
            for op in range(self._ops):
                at = start + op * layout.SLOT.size
                for offset, amount in ((8, 1), (32, 72), (40, 24), (72, 1_000_000), (bucket, 1)):
                    word = memory[at + offset : at + offset + 8]
                    number = int.from_bytes(word, "little") + amount
                    memory[at + offset : at + offset + 8] = number.to_bytes(8, "little")


def scrape(url: str) -> bytes:
    """One scrape, as Prometheus makes it."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def measure(url: str, process: int, pages: LivePages | None, scrapes: int) -> Figures:
    """Scrape so often, and count in between."""
    watched = psutil.Process(process)
    wall: list[float] = []
    cpu: list[float] = []
    body = b""
    for _ in range(scrapes):
        if pages is not None:
            pages.count()
        before = _cpu_seconds(watched)
        begin = time.perf_counter()
        body = scrape(url)
        wall.append(time.perf_counter() - begin)
        cpu.append(_cpu_seconds(watched) - before)
    series = sum(1 for line in body.splitlines() if line and not line.startswith(b"#"))
    # The kernel counts CPU time in ticks of 10 ms: their mean is exact, their median is not.
    return Figures(
        statistics.median(wall), statistics.fmean(cpu), series, watched.memory_info().rss
    )


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


# Files of prometheus_client: one process each, as a Python server would have.
_WRITE = """
import sys
from prometheus_client import CollectorRegistry, Counter, Histogram, values
pages, ops, npus = map(int, sys.argv[1:])
current = [0]
values.ValueClass = values.MultiProcessValue(process_identifier=lambda: current[0])
import prometheus_client.metrics as metrics
metrics.values.ValueClass = values.ValueClass
registry = CollectorRegistry()
slot = ("op", "kind", "npu")
kinds = Counter("npu_fallback_kind_events", "x", slot[1:], registry=registry)
events = Counter("npu_fallback_events", "x", slot, registry=registry)
moved = Counter("npu_fallback_transfer_bytes", "x", (*slot, "direction"), registry=registry)
host = Counter("npu_fallback_host_seconds", "x", slot, registry=registry)
bounds = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0)
options = {"buckets": bounds, "registry": registry}
duration = Histogram("npu_fallback_duration_seconds", "x", slot[:2], **options)
for page in range(pages):
    current[0] = 1000 + page
    npu = str(page % npus)
    kinds.labels("dispatcher", npu).inc(ops)
    for op in range(ops):
        labels = (f"aten::operator_{op}.out", "dispatcher", npu)
        events.labels(*labels).inc(1 + op)
        moved.labels(*labels, "d2h").inc(72)
        moved.labels(*labels, "h2d").inc(24)
        host.labels(*labels).inc(0.0005)
        duration.labels(*labels[:2]).observe(0.0005)
"""
_SERVE = """
import prometheus_client
from prometheus_client import CollectorRegistry, make_wsgi_app, multiprocess, start_http_server
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
server, _ = start_http_server(0, "127.0.0.1", registry=registry)
print(server.server_port, flush=True)
input()
"""


@contextmanager
def multiprocess_mode(folder: Path, pages: int, ops: int) -> Iterator[tuple[str, int]]:
    """Serve the same series with prometheus_client; gives the address and the pid."""
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    numbers = [str(pages), str(ops), str(NPUS)]
    subprocess.run([sys.executable, "-c", _WRITE, *numbers], env=environ, check=True)
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield f"http://127.0.0.1:{port}/metrics", process.pid
        finally:
            process.kill()


def compare(pages: int, ops: int, rounds: int, scrapes: int) -> str:
    """Measure both in turns; one row of a Markdown table."""
    ours: list[Figures] = []
    theirs: list[Figures] = []
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        (base / "pages").mkdir(mode=0o700)
        (base / "multiprocess").mkdir()
        live = LivePages(base / "pages", pages, ops, stack)
        exporter: Exporter = stack.enter_context(
            serving("--no-npu-smi", "--max-ops", str(ops), pages=base / "pages")
        )
        url, pid = stack.enter_context(multiprocess_mode(base / "multiprocess", pages, ops))
        for _ in range(3):
            scrape(exporter.url), scrape(url)
        for _ in range(rounds):
            ours.append(measure(exporter.url, exporter.process.pid, live, scrapes))
            theirs.append(measure(url, pid, None, max(1, scrapes // 5)))
    wall = statistics.median(one.wall for one in ours)
    cpu = statistics.fmean(one.cpu for one in ours)
    their_wall = statistics.median(one.wall for one in theirs)
    their_cpu = statistics.fmean(one.cpu for one in theirs)
    return (
        f"| {pages} × {ops} | {ours[0].series} | {wall * 1e3:.1f} | {cpu * 1e3:.1f} "
        f"| {cpu / SCRAPE_INTERVAL_SECONDS:.2%} | {max(one.resident for one in ours) >> 20} "
        f"| {theirs[0].series} | {their_wall * 1e3:.0f} | {their_cpu * 1e3:.0f} "
        f"| {their_wall / wall:.1f} | {their_cpu / cpu:.1f} |"
    )


HEADER = """\
| pages × ops | series | scrape, ms | CPU, ms | share of a core at 15 s | resident, MiB \
| multiprocess: series | scrape, ms | CPU, ms | ratio | ratio of CPU |
|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--scrapes", type=int, default=10, help="per round")
    args = parser.parse_args()
    print(machine())
    print(f"medians of {args.rounds} rounds of {args.scrapes} scrapes; CPU: means\n")
    print(HEADER)
    for pages, ops in ((64, 128), (8, 16)):
        print(compare(pages, ops, args.rounds, args.scrapes), flush=True)


if __name__ == "__main__":
    main()
