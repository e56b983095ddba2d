"""The long torture of pages and totals, with real torch_npu workers.

Run on the simulated device::

    eval "$(python -m tests.cann_sim env)"
    python -m benchmarks.soak.servers [--seconds 120]

Four processes fall back every 2 ms; one of them is killed every 5 s, one of two exporters is
restarted five times, both are scraped 20 times a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.soak.torture import Torture
from tests.support.child import child_environment

_WORKER = """
import os, sys, time, torch, torch_npu
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
x = torch.ones(16).npu()
events = 0
while True:
    torch.lgamma(x)
    events += 1
    os.pwrite(file, events.to_bytes(8, "little"), 0)
    time.sleep(0.002)
"""


def start_worker(pages: Path, acknowledged: Path) -> subprocess.Popen[bytes]:
    """Start one worker."""
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(acknowledged)],
        env=child_environment({"NPU_FALLBACK_DIR": str(pages), "NPU_FALLBACK_MODE": "observe"}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kill-every", type=float, default=5.0)
    parser.add_argument("--restarts", type=int, default=5)
    args = parser.parse_args()
    from npu_fallback_exporter.instrument.build import build

    build()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        outcome = Torture(
            start_worker,
            Path(folder),
            workers=4,
            kill_every=args.kill_every,
            seconds=args.seconds,
            restarts=args.restarts,
        ).run()
    print(outcome)
    sys.exit(1 if outcome.complaints() else 0)


if __name__ == "__main__":
    main()
