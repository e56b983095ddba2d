"""Scrapes of an invented past, which a real Prometheus then holds."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.exporter_process import wait_until
from tests.support.prometheus_process import ask, prometheus_with

#: A fixed moment, so that a run is like the one before.
END = 1_700_000_000.0

Labels = Mapping[str, str]


class Recording:
    """Samples, gathered series by series as promtool wants them."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, name: str, labels: Labels, moment: float, value: float) -> None:
        """Record one sample; those of a series in the order of time."""
        text = ",".join(f'{key}="{label}"' for key, label in sorted(labels.items()))
        number = "NaN" if value != value else f"{value:.17g}"
        self._series[name, text].append(f"{name}{{{text}}} {number} {moment:.3f}\n")

    def write_blocks(self, folder: Path) -> None:
        """Write everything into ``folder/tsdb``."""
        source = folder / "recorded.om"
        with source.open("w", encoding="utf-8") as file:
            for _, lines in sorted(self._series.items()):
                file.writelines(lines)
            file.write("# EOF\n")
        subprocess.run(
            ["promtool", "tsdb", "create-blocks-from", "openmetrics", source, folder / "tsdb"],
            check=True,
            capture_output=True,
            timeout=120,
        )


@contextmanager
def prometheus_holding(recording: Recording, folder: Path) -> Iterator[str]:
    """Run a Prometheus that holds the recording; gives its host:port when it answers."""
    recording.write_blocks(folder)
    with prometheus_with({"scrape_configs": []}, folder) as address:
        wait_until(lambda: ask(address, "status/buildinfo"), 60, "no answer from Prometheus")
        yield address
