"""The variables of the dashboard: where from, which workload, which chip, which two revisions."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from .panels import CHOSEN, DATASOURCE

_ALL = models.VariableOption(text="All", value="$__all")


def variables() -> list[dashboard.DatasourceVariable | dashboard.QueryVariable]:
    """Return all of them, in the order in which they depend on each other."""
    return [
        dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        _several("namespace", "Namespace", "label_values(workload:up:count, namespace)"),
        _several(
            "workload",
            "Workload",
            'label_values(workload:up:count{namespace=~"$namespace"}, workload)',
        ),
        _several("npu", "NPU", f"label_values(npu_fallback_kind_events_total{{{CHOSEN}}}, npu)"),
        _revision("baseline", "Baseline"),
        _revision("candidate", "Candidate"),
    ]


def _several(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return _query(name, label, query).multi(True).include_all(True).all_value(".+").current(_ALL)


def _revision(name: str, label: str) -> dashboard.QueryVariable:
    return _query(name, label, f"label_values(npu_fallback_processes{{{CHOSEN}}}, revision)")


def _query(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NATURAL_ASC)
    )
