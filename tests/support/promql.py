"""What a PromQL expression asks for, by a parser of PromQL, held against what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

from npu_fallback_exporter.metrics import CATALOGUE

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"

#: What the scrape configuration gives to each series; see deploy/prometheus/README.md.
TARGET_LABELS = frozenset({"job", "namespace", "workload", "revision", "node", "pod"})

#: Series of others, with the labels that the rules and the dashboard use of them. Names are those
#: of Prometheus, of kubelet's cAdvisor, of prometheus_client, and of Huawei's npu-exporter
#: (component/npu-exporter in github.com/Ascend/mind-cluster).
FOREIGN: Mapping[str, frozenset[str]] = {
    "up": frozenset(),
    "ALERTS": frozenset({"alertname", "alertstate", "severity"}),
    "container_cpu_usage_seconds_total": frozenset({"container"}),
    "process_resident_memory_bytes": frozenset(),
    "process_cpu_seconds_total": frozenset(),
    "npu_chip_info_utilization": frozenset({"id"}),
}


@dataclass(frozen=True)
class Selector:
    """One series that is asked for: its name, and the labels that it is chosen by."""

    name: str
    labels: frozenset[str]


def selectors(expression: str) -> list[Selector]:
    """Return what ``expression`` asks for; raises ValueError where it is no PromQL."""
    return list(_walk(promql.parse(expression)))


def _walk(node: Any) -> Iterator[Selector]:
    if isinstance(node, promql.MatrixSelector):
        node = node.vector_selector
    if isinstance(node, promql.VectorSelector):
        labels = frozenset(matcher.name for matcher in node.matchers.matchers)
        yield Selector(node.name or "", labels)
        return
    for name in ("lhs", "rhs", "expr", "param"):
        if (child := getattr(node, name, None)) is not None:
            yield from _walk(child)
    for child in getattr(node, "args", ()):
        yield from _walk(child)


def exported() -> dict[str, frozenset[str]]:
    """Labels of every series of the catalogue, by name."""
    found: dict[str, frozenset[str]] = {}
    for spec in (spec for section in CATALOGUE.values() for spec in section):
        labels = frozenset(spec.labels)
        if spec.type != "histogram":
            found[spec.name] = labels
            continue
        for suffix in ("_sum", "_count"):
            found[spec.name + suffix] = labels
        found[spec.name + "_bucket"] = labels | {"le"}
    return found


def rules(file: str) -> list[dict[str, Any]]:
    """Rules of ``recording.yml`` or ``alerts.yml``, as they stand in it."""
    groups = yaml.safe_load((PROMETHEUS / "rules" / file).read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> set[str]:
    """Names of the recorded series."""
    return {rule["record"] for rule in rules("recording.yml")}


def unknown(expression: str) -> list[str]:
    """Return the names and labels in ``expression`` that nothing exports or records."""
    series = {**FOREIGN, **exported()}
    wrong = []
    for selector in selectors(expression):
        if selector.name in recorded():
            level = selector.name.split(":")[0]
            known = frozenset({"namespace", *level.split("_")})
        elif selector.name in series:
            known = series[selector.name] | TARGET_LABELS
        else:
            wrong.append(selector.name)
            continue
        wrong.extend(f"{selector.name}{{{label}}}" for label in sorted(selector.labels - known))
    return wrong
