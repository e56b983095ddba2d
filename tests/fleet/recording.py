"""The recorded fleet as a file: OpenMetrics with timestamps, compressed."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from pathlib import Path

RECORDING = Path(__file__).parents[1] / "data" / "fleet" / "recording.om.gz"

_DUMPED = re.compile(
    r'^\{__name__="(?P<name>[^"]+)"(?:, )?(?P<labels>.*)\} (?P<value>\S+) (?P<ms>\d+)$'
)

#: Names the port and the process; nothing asks for it.
_LEFT_OUT = ("instance",)


def write(dumped: str, path: Path) -> None:
    """Write what ``promtool tsdb dump`` printed as something that it can read again.

    Recorded series are left out: the rules of the day make them anew.
    """
    families: defaultdict[str, list[str]] = defaultdict(list)
    for line in dumped.splitlines():
        found = _DUMPED.match(line)
        if found is None:
            raise ValueError(f"not a sample: {line!r}")
        if ":" in found["name"] or found["name"] == "ALERTS_FOR_STATE":
            continue
        labels = ",".join(
            f'{name}="{value}"'
            for name, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found["labels"])
            if name not in _LEFT_OUT
        )
        seconds = int(found["ms"]) / 1000
        families[found["name"]].append(
            f"{found['name']}{{{labels}}} {found['value']} {seconds:.3f}"
        )
    lines = [line for name in sorted(families) for line in families[name]]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write("\n".join([*lines, "# EOF", ""]).encode())


def read(path: Path = RECORDING) -> str:
    """Return the recording as text."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()


def bounds(text: str) -> tuple[float, float]:
    """Return the times of the first and the last sample."""
    times = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"]
    return min(times), max(times)
