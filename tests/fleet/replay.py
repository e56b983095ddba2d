"""The recorded fleet in a real Prometheus: its samples, and the recorded series over them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.recording import RECORDING, bounds, read
from tests.support.exporter_process import wait_until
from tests.support.prometheus_process import ask, prometheus_with
from tests.support.promql import PROMETHEUS

#: Old samples are to stay.
_FLAGS = ("--storage.tsdb.retention.time=100y",)
#: Rules that use recorded series find them in the second pass.
_PASSES = 2


@dataclass(frozen=True)
class Replay:
    """A running Prometheus with the recording; times are Unix seconds."""

    address: str
    start: float
    end: float


@contextmanager
def replayed(folder: Path, recording: Path = RECORDING) -> Iterator[Replay]:
    """Run Prometheus on the recording until the block ends."""
    text = read(recording)
    start, end = bounds(text)
    samples = folder / "samples.om"
    samples.write_text(text, encoding="utf-8")
    _promtool("create-blocks-from", "openmetrics", str(samples), str(folder / "tsdb"))
    for _ in range(_PASSES):
        with prometheus_with({}, folder, *_FLAGS) as address:
            _wait_for(address)
            _promtool(
                *("create-blocks-from", "rules", f"--url=http://{address}"),
                *(f"--start={start:.0f}", f"--end={end:.0f}", "--eval-interval=30s"),
                f"--output-dir={folder / 'tsdb'}",
                str(PROMETHEUS / "rules" / "recording.yml"),
            )
    with prometheus_with({}, folder, *_FLAGS) as address:
        _wait_for(address)
        yield Replay(address, start, end)


def _promtool(*arguments: str) -> None:
    done = subprocess.run(
        ["promtool", "tsdb", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _wait_for(address: str) -> None:
    wait_until(lambda: ask(address, "query", query="vector(1)"), why="Prometheus does not start")
