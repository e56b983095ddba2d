"""What the page costs the exporter: its history, and the answers that the page asks for.

Run: ``python -m benchmarks.page``. Live pages on a tmpfs, a real exporter in a process of its own.
First nobody asks, so that all CPU time is the history's; then somebody scrapes; then a page asks as
often as there is a new answer. CPU times are what the kernel has counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import psutil

from benchmarks.paired import machine
from benchmarks.scrape import LivePages, scrape
from tests.support.exporter_process import Exporter, serving

HEADER = """\
| pages × ops | idle, % of a core | scrape, ms CPU | report, ms CPU | report, bytes | in gzip \
| resident, MiB | after reports, MiB |
|---|---|---|---|---|---|---|---|"""


def measure(pages: int, ops: int, seconds: float, asked: int) -> str:
    """One row of a Markdown table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        live = LivePages(folder, pages, ops, stack)
        exporter: Exporter = stack.enter_context(
            serving("--no-npu-smi", "--max-ops", str(ops), pages=folder)
        )
        process = psutil.Process(exporter.process.pid)
        report = exporter.url.replace("metrics", "api/v1/report")
        scrape(exporter.url)
        begin, started = _cpu_seconds(process), time.monotonic()
        while time.monotonic() - started < seconds:
            live.count()
            time.sleep(1.0)
        idle = (_cpu_seconds(process) - begin) / (time.monotonic() - started)
        scraped = _each(process, live, exporter.url, asked, pause=0.0)
        before = process.memory_info().rss
        # More often than every two seconds the answers are the same.
        reported = _each(process, live, report, asked, pause=2.05)
        plain, packed = len(scrape(report)), len(_in_gzip(report))
        after = process.memory_info().rss
    return (
        f"| {pages} × {ops} | {idle:.2%} | {scraped * 1e3:.1f} | {reported * 1e3:.1f} "
        f"| {plain} | {packed} | {before / (1 << 20):.1f} | {after / (1 << 20):.1f} |"
    )


def _each(process: psutil.Process, live: LivePages, url: str, times: int, pause: float) -> float:
    begin = _cpu_seconds(process)
    for _ in range(times):
        live.count()
        scrape(url)
        time.sleep(pause)
    return (_cpu_seconds(process) - begin) / times


def _in_gzip(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of being idle")
    parser.add_argument("--asked", type=int, default=20, help="scrapes, and reports")
    args = parser.parse_args()
    print(machine())
    print(HEADER)
    for pages, ops in ((8, 16), (64, 128)):
        print(measure(pages, ops, args.seconds, args.asked), flush=True)


if __name__ == "__main__":
    main()
