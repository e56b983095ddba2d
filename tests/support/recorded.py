"""Scrapes of an invented past, up to now, which a real Prometheus then holds."""

from __future__ import annotations

import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.support.exporter_process import wait_until
from tests.support.prometheus_process import ask, prometheus_with

Labels = Mapping[str, str]


class Recording:
    """Samples, gathered series by series as promtool wants them.

    Attributes:
        end: Unix time of the last scrape: recording rules are evaluated now and not in the past.
    """

    def __init__(self) -> None:
        self.end = float(int(time.time()))
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
def prometheus_holding(recording: Recording, rules: Path, folder: Path) -> Iterator[str]:
    """Run a Prometheus that holds the recording; gives its host:port when all rules have run."""
    recording.write_blocks(folder)
    (group,) = yaml.safe_load(rules.read_text(encoding="utf-8"))["groups"]
    file = folder / "rules.json"
    file.write_text(json.dumps({"groups": [{**group, "interval": "1s"}]}), encoding="utf-8")
    with prometheus_with({"rule_files": [str(file)]}, folder) as address:
        wait_until(lambda: _have_run(address), 60, "the rules have not run")
        yield address


def _have_run(address: str) -> bool:
    found = ask(address, "rules") or {"groups": []}
    rules = [rule for group in found["groups"] for rule in group["rules"]]
    return bool(rules) and all(rule["health"] == "ok" for rule in rules)
