"""The long torture of pages and totals, with native workers.

Run: ``python -m benchmarks.soak.pages [--seconds 120]``. 16 processes drive the page writer without
torch; one is killed every 50 ms, one of two exporters is restarted ten times, both are scraped 20
times a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.soak.torture import Torture
from tests.support.page_life import command


def start_worker(pages: Path, acknowledged: Path) -> subprocess.Popen[bytes]:
    """Start one worker: an event about every 2 ms."""
    return subprocess.Popen(command("acknowledging", pages, acknowledged, 2000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--kill-every", type=float, default=0.05)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        outcome = Torture(
            start_worker,
            Path(folder),
            workers=args.workers,
            kill_every=args.kill_every,
            seconds=args.seconds,
            restarts=args.restarts,
            seed=args.seed,
        ).run()
    print(outcome)
    sys.exit(1 if outcome.complaints() else 0)


if __name__ == "__main__":
    main()
