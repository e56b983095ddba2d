"""Time to read npu-smi's plain table: the largest recorded one, and one of 64 chips.

Run: ``python -m benchmarks.npu_smi_parser``. The largest sample has to stay under 2 ms.
"""

from __future__ import annotations

import platform
import statistics
import time
from pathlib import Path

from npu_fallback_exporter.npu_smi.figures import (
    ChipFigures,
    ChipKey,
    Health,
    ProcessFigures,
    Usage,
)
from npu_fallback_exporter.npu_smi.parser import parse_info, parse_usages
from tests.support.npu_smi_tables import Table

SAMPLES = Path(__file__).parent.parent / "tests" / "data" / "npu_smi"
ROUNDS = 300


def median_ms(read: object, text: str) -> float:
    """Median wall time of one reading, in milliseconds."""
    assert callable(read)
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        read(text)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds) * 1e3


def table_of_64() -> str:
    """A table of 64 chips with eight processes each, the most that the tool prints."""
    chips = tuple(
        ChipFigures(
            key=ChipKey(card, die),
            name="Ascend910",
            health=Health.OK,
            physical_id=2 * card + die,
            bus_id="0000:9D:00.0",
            power_watts=163.6,
            temperature_celsius=37.0,
            aicore_percent=12.0,
            hbm_mib=Usage(31877, 65536),
        )
        for card in range(32)
        for die in range(2)
    )
    processes = tuple(
        ProcessFigures(chip.key, 1000 + 8 * number + index, "VLLMEngineCore", 3000)
        for number, chip in enumerate(chips)
        for index in range(8)
    )
    return Table("26", chips, processes).text


def main() -> None:
    """Print medians."""
    largest = max(SAMPLES.glob("*/*.txt"), key=lambda path: path.stat().st_size)
    usages = (SAMPLES / "type" / "usages_910b_25.5.1.txt").read_text(encoding="utf-8")
    print(f"Python {platform.python_version()}, {platform.machine()}, median of {ROUNDS}")
    for name, read, text in (
        (largest.name, parse_info, largest.read_text(encoding="utf-8")),
        ("64 chips, 512 processes", parse_info, table_of_64()),
        ("usages of one card", parse_usages, usages),
    ):
        print(f"{name}: {len(text)} bytes, {median_ms(read, text):.3f} ms")


if __name__ == "__main__":
    main()
