"""A real server falls back, and the alert arrives: exporter, Prometheus, Alertmanager, webhook."""

from __future__ import annotations

import importlib.util
import re
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fleet.pod import Place, pod
from tests.support.alertmanager_process import Webhook, alertmanager, needs_alertmanager
from tests.support.exporter_process import wait_until
from tests.support.http_thread import answering
from tests.support.private_dev import needs_private_dev
from tests.support.prometheus_process import ask, needs_prometheus, prometheus_with
from tests.support.promql import PROMETHEUS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    needs_prometheus,
    needs_alertmanager,
    pytest.mark.skipif(
        importlib.util.find_spec("torch_npu") is None, reason="no torch_npu in this environment"
    ),
    needs_private_dev,
    pytest.mark.usefixtures("hook_is_built"),
]


def alertmanager_config(url: str) -> dict[str, Any]:
    """The one in deploy/, with our webhook, and without the time that lets alerts gather."""
    config: dict[str, Any] = yaml.safe_load((PROMETHEUS / "alertmanager.yml").read_text("utf-8"))
    config["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    config["receivers"][0]["webhook_configs"][0]["url"] = url
    return config


def prometheus_config(target: str, manager: str) -> dict[str, Any]:
    """The one in deploy/, with our exporter and Alertmanager, and faster."""
    config: dict[str, Any] = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    config["global"] = {
        "scrape_interval": "300ms",
        "scrape_timeout": "300ms",
        "evaluation_interval": "300ms",
    }
    config["rule_files"] = [str(PROMETHEUS / file) for file in config["rule_files"]]
    config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [manager]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
    return config


def vector(address: str, query: str) -> list[dict[str, Any]]:
    data = ask(address, "query", query=query) or {"result": []}
    rows: list[dict[str, Any]] = data["result"]
    return rows


def test_a_new_operator_and_a_refusal_reach_the_webhook_and_health_does_not(
    tmp_path: Path,
) -> None:
    place = Place("server", revision="1", node="127.0.0.1", chip=0, mode="strict")
    with (
        answering(Webhook()) as receiver,
        alertmanager(tmp_path, alertmanager_config(receiver.url)) as manager,
        pod(tmp_path / "pod", place, with_npu_smi=True) as server,
    ):
        server.behave("clean", busy=70)
        with prometheus_with(prometheus_config(server.address, manager), tmp_path) as address:
            wait_until(
                lambda: vector(address, "workload:npu_operators_per_armed_second:ratio_rate5m > 0"),
                60,
                "no operators",
            )
            assert not vector(address, "ALERTS")

            server.behave("broken", busy=30)
            wanted = {"NpuFallbackNewOperator", "NpuFallbackRefused"}
            wait_until(
                lambda: {alert["labels"]["alertname"] for alert in receiver.alerts} >= wanted,
                60,
                f"{wanted} did not arrive",
            )
            check_labels_of_recorded_series(address)
            check_federation(address)
            rows = vector(address, 'ALERTS{alertstate="firing"}')

    # The first of each; later notifications repeat them.
    arrived = {alert["labels"]["alertname"]: alert for alert in reversed(receiver.alerts)}
    assert {row["metric"]["alertname"] for row in rows} == set(arrived) == wanted
    assert arrived["NpuFallbackNewOperator"]["labels"] == {
        "alertname": "NpuFallbackNewOperator",
        "namespace": "default",
        "workload": "server",
        "op": "aten::lgamma.out",
        "kind": "dispatcher",
        "severity": "warning",
    }
    assert arrived["NpuFallbackRefused"]["labels"]["op"] == "aten::hypot.out"
    for alert in arrived.values():
        assert alert["status"] == "firing"
        assert "<no value>" not in str(alert["annotations"])


def check_labels_of_recorded_series(address: str) -> None:
    """What is federated must not grow with pods, nodes or chips."""
    series = vector(address, '{__name__=~"workload.*:.+"}')
    assert len({row["metric"]["__name__"] for row in series}) >= 20
    labels = {label for row in series for label in row["metric"]}
    assert labels <= {
        *("__name__", "namespace", "workload"),
        *("op", "kind", "direction", "cause", "le"),
    }


def check_federation(address: str) -> None:
    """The line of the README gives the recorded series, and nothing else."""
    text = (PROMETHEUS / "README.md").read_text("utf-8")
    (match,) = re.findall(r"""'match\[\]': \['(.+)'\]""", text)
    query = urllib.parse.urlencode({"match[]": match})
    with urllib.request.urlopen(f"http://{address}/federate?{query}", timeout=30) as reply:
        lines = reply.read().decode().splitlines()
    names = {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}
    assert {"workload_op_kind:npu_fallback_events:sum", "workload:up:sum"} <= names
    assert all(name.startswith("workload") for name in names)
