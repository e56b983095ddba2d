"""Records a small fleet for the dashboard's tests and picture: ``python -m tests.fleet.record``.

Three pods of two revisions run for real on the simulated device and are scraped by a real
Prometheus. Two things are scripted: what a request does (``server.py``), and the AI Core
utilization that the stand-ins of npu-smi and npu-exporter show. Everything else is counted.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.fleet.chip_exporter import ChipExporter
from tests.fleet.pod import Place, Pod, pod
from tests.fleet.recording import RECORDING, write
from tests.support.http_thread import answering
from tests.support.prometheus_process import Target, prometheus_with, scrape_config
from tests.support.promql import PROMETHEUS

SCRAPE_SECONDS = 15

#: Minutes after the start, revision, what its requests do, AI Core percentage.
SCRIPT = (
    (0.0, "7f9c", "healthy", 62),
    (0.0, "84d1", "new op", 57),
    (8.0, "7f9c", "hot fallback", 24),
    (15.0, "7f9c", "chatty", 41),
    (21.0, "7f9c", "healthy", 63),
)
PODS = (
    Place("chat-7f9c-a", "7f9c", "node-1", chip=0),
    Place("chat-7f9c-b", "7f9c", "node-2", chip=0),
    Place("chat-84d1-a", "84d1", "node-2", chip=1, mode="strict"),
)
#: Its chips are shown by npu-exporter; those of other nodes by npu-smi in the pods.
NODE_WITH_CHIP_EXPORTER = "node-2"


def main() -> None:
    """Record, and write the recording into the tests' data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=28.0)
    parser.add_argument("--output", type=Path, default=RECORDING)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="npu-fleet-") as name, ExitStack() as stack:
        folder = Path(name)
        chips = stack.enter_context(answering(ChipExporter()))
        pods = [
            stack.enter_context(
                pod(folder / place.name, place, with_npu_smi=place.node != NODE_WITH_CHIP_EXPORTER)
            )
            for place in PODS
        ]
        of_chips = {"job": "npu-exporter", "node": NODE_WITH_CHIP_EXPORTER}
        targets = [*map(target_of, pods), Target(chips.address, of_chips)]
        config = scrape_config(*targets, interval=SCRAPE_SECONDS)
        config["global"]["evaluation_interval"] = f"{SCRAPE_SECONDS}s"
        config["rule_files"] = [str(PROMETHEUS / "rules" / "*.yml")]
        with prometheus_with(config, folder):
            play(pods, chips, arguments.minutes)
        dumped = subprocess.run(
            ["promtool", "tsdb", "dump", str(folder / "tsdb")],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        write(dumped.stdout, arguments.output)


def target_of(pod: Pod) -> Target:
    """The labels that relabeling gives in a cluster."""
    return Target(
        pod.address,
        {
            "job": "npu-fallback-exporter",
            "namespace": "inference",
            "workload": "chat",
            "revision": pod.place.revision,
            "node": pod.place.node,
            "pod": pod.place.name,
        },
    )


def play(pods: Sequence[Pod], chips: ChipExporter, minutes: float) -> None:
    """Let each revision behave as the script says, until the time is over."""
    started = time.monotonic()
    for at, revision, phase, busy in SCRIPT:
        if at >= minutes:
            break
        time.sleep(max(0.0, started + at * 60 - time.monotonic()))
        for one in pods:
            if one.place.revision == revision:
                one.behave(phase, busy)
                if one.place.node == NODE_WITH_CHIP_EXPORTER:
                    chips.busy[one.place.chip] = busy
    time.sleep(max(0.0, started + minutes * 60 - time.monotonic()))


if __name__ == "__main__":
    main()
