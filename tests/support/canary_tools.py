"""How Argo Rollouts and Flagger read their templates and judge what Prometheus answers.

Taken from what their documentation and sources say, since both run in a cluster only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.prometheus_process import ask

CANARY = Path(__file__).parents[2] / "deploy" / "canary"


def documents(name: str) -> list[dict[str, Any]]:
    """Documents of a file in deploy/canary."""
    return list(yaml.safe_load_all((CANARY / name).read_text(encoding="utf-8")))


def fill_in_argo(text: str, template: Mapping[str, Any], given: Mapping[str, str]) -> str:
    """Put arguments in the place of ``{{args.name}}``; fails on one that nobody has declared."""
    declared = {arg["name"]: arg.get("value") for arg in template["spec"]["args"]}
    assert given.keys() <= declared.keys()
    values = {**declared, **given}
    filled = re.sub(r"{{\s*args\.([\w-]+)\s*}}", lambda found: values[found[1]], text)
    assert "{{" not in filled
    return filled


def fill_in_flagger(text: str, metric: Mapping[str, Any], namespace: str, target: str) -> str:
    """Put a Canary's values in the place of ``{{ name }}`` and ``{{ variables.name }}``."""
    values = {"namespace": namespace, "target": target, "interval": metric["interval"]}
    for name, value in metric.get("templateVariables", {}).items():
        values[f"variables.{name}"] = value
    filled = re.sub(r"{{\s*([\w.]+)\s*}}", lambda found: values[found[1]], text)
    assert "{{" not in filled
    return filled


def query(address: str, text: str, moment: float) -> list[float]:
    """Values of the series that an instant query gives at a Unix time."""
    found = ask(address, "query", query=text, time=str(moment))
    assert found["resultType"] == "vector"
    return [float(row["value"][1]) for row in found["result"]]


def argo_phase(metric: Mapping[str, Any], result: list[float]) -> str:
    """Phase of a measurement that has both conditions: the one of failure comes first."""
    if _holds(metric["failureCondition"], result):
        return "Failed"
    return "Successful" if _holds(metric["successCondition"], result) else "Inconclusive"


def argo_run_phase(phases: list[str]) -> str:
    """Phase of a run of several metrics: the worst."""
    for phase in ("Failed", "Inconclusive"):
        if phase in phases:
            return phase
    return "Successful"


def flagger_promotes(metric: Mapping[str, Any], result: list[float]) -> bool:
    """Whether a check lets the canary go on: it takes the last series, and needs a number."""
    if not result or math.isnan(result[-1]):
        return False
    limits = metric["thresholdRange"]
    return bool(limits.get("min", -math.inf) <= result[-1] <= limits.get("max", math.inf))


def _holds(condition: str, result: list[float]) -> bool:
    python = condition.replace("&&", "and").replace("!isNaN", "not isNaN")
    names = {"result": result, "len": len, "isNaN": math.isnan, "__builtins__": {}}
    return bool(eval(python, names))
