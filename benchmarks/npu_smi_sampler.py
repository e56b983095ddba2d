"""CPU time of the sampler itself, as a share of one core at the default interval.

Run: ``python -m benchmarks.npu_smi_sampler``. It calls a shell script that takes
as long as npu-smi does on an idle machine of eight cards and prints its largest
recorded table; the script's own CPU time is not counted. Has to stay under 0.1 %.
"""

from __future__ import annotations

import platform
import tempfile
import time
from pathlib import Path

from npu_fallback_exporter.npu_smi.command import NpuSmiCommand
from npu_fallback_exporter.npu_smi.sampler import DEFAULT_INTERVAL_SECONDS, NpuSmiSampler

SAMPLES = Path(__file__).parent.parent / "tests" / "data" / "npu_smi"
CYCLES = 10
TOOL_SECONDS = 1.2


class Hurried:
    """A clock that stands still except for what the benchmark adds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def write_tool(folder: Path) -> Path:
    """Write a script that prints a table of eight cards, or the figures of the card asked for."""
    tool = folder / "npu-smi"
    info = SAMPLES / "info" / "910a_24.1.RC2_doc_warning_4procs.txt"
    usages = SAMPLES / "type" / "usages_910a-gen_doc.txt"
    tool.write_text(
        f"#!/bin/sh\nsleep {TOOL_SECONDS}\n"
        f'[ "$2" != -m ] || exec cat {SAMPLES / "map" / "m_910a_6.0.RC1_doc.txt"}\n'
        f'[ "$2" = -t ] || exec cat {info}\n'
        f'sed "s/NPU ID .*: 0/NPU ID : $5/" {usages}\n',
        encoding="utf-8",
    )
    tool.chmod(0o755)
    return tool


def main() -> None:
    """Print the share of a core."""
    clock = Hurried()
    with tempfile.TemporaryDirectory() as folder:
        tool = write_tool(Path(folder))
        sampler = NpuSmiSampler(NpuSmiCommand(str(tool)), monotonic=clock)
        sampler.step()
        sampler.step()
        started = time.process_time()
        # One table and one card per interval; the pauses between them cost nothing.
        for _ in range(2 * CYCLES):
            clock.now += DEFAULT_INTERVAL_SECONDS / 2
            sampler.step()
        used = time.process_time() - started
    snapshot = sampler.snapshot()
    assert snapshot.up
    assert snapshot.usages
    assert not any(snapshot.failures.values())
    per_interval = used / CYCLES
    print(f"Python {platform.python_version()}, {platform.machine()}, {CYCLES} intervals")
    print(f"CPU time per interval: {per_interval * 1e3:.2f} ms")
    print(f"share of one core: {per_interval / DEFAULT_INTERVAL_SECONDS:.4%}")


if __name__ == "__main__":
    main()
