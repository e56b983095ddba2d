"""The long torture of pages and totals, with native workers.

Run: ``python -m benchmarks.soak.pages [--seconds 120]``. 16 processes drive the page writer without
torch; one is killed every 50 ms, one of two exporters is restarted ten times, both are scraped 20
times a second.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.soak.torture import run_from_command_line
from tests.support.page_life import command


def start_worker(pages: Path, acknowledged: Path) -> subprocess.Popen[bytes]:
    """Start one worker: an event about every 2 ms."""
    return subprocess.Popen(command("acknowledging", pages, acknowledged, 2000))


def main() -> None:
    run_from_command_line(__doc__, start_worker, workers=16, kill_every=0.05, restarts=10)


if __name__ == "__main__":
    main()
