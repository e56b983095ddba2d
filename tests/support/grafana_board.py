"""The dashboard that is checked in, and a choice for its variables that fits the recorded fleet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "npu-fallbacks.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [one for one in BOARD["panels"] if one["type"] != "row"]
VARIABLES: dict[str, dict[str, Any]] = {one["name"]: one for one in BOARD["templating"]["list"]}

#: What Grafana puts in for "All", and the two revisions.
CHOICE = {
    "namespace": ".+",
    "workload": ".+",
    "npu": ".+",
    "baseline": "7f9c",
    "candidate": "84d1",
}


def filled_in(expression: str) -> str:
    """Return a query as Grafana sends it."""
    return re.sub(r"\$(\w+)", lambda found: CHOICE[found[1]], expression)
