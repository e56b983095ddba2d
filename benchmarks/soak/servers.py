"""The long torture of pages and totals, with real torch_npu workers.

Run on the simulated device::

    eval "$(python -m tests.cann_sim env)"
    python -m benchmarks.soak.servers [--seconds 120]

Four processes fall back every 2 ms; one of them is killed every 5 s, one of two exporters is
restarted five times, both are scraped 20 times a second.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.soak.torture import run_from_command_line
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
    from npu_fallback_exporter.instrument.build import build

    build()
    run_from_command_line(__doc__, start_worker, workers=4, kill_every=5.0, restarts=5)


if __name__ == "__main__":
    main()
