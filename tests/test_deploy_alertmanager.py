"""The configuration of Alertmanager in a real one: what is sent together, and what is not sent."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.alertmanager_process import Webhook, alertmanager, needs_alertmanager
from tests.support.exporter_process import wait_until
from tests.support.http_thread import answering
from tests.support.promql import PROMETHEUS

pytestmark = [pytest.mark.timeout(120), needs_alertmanager]


def config(url: str) -> dict[str, Any]:
    """The one in deploy/, with our webhook, and with little time to gather alerts."""
    found: dict[str, Any] = yaml.safe_load((PROMETHEUS / "alertmanager.yml").read_text("utf-8"))
    found["route"] |= {"group_wait": "500ms", "group_interval": "500ms"}
    found["receivers"][0]["webhook_configs"][0]["url"] = url
    return found


def fire(address: str, *alerts: dict[str, str]) -> None:
    """Post alerts as Prometheus does, as soon as Alertmanager is there."""
    body = json.dumps([{"labels": {"namespace": "ns"} | labels} for labels in alerts]).encode()
    request = urllib.request.Request(
        f"http://{address}/api/v2/alerts", body, {"Content-Type": "application/json"}
    )

    def posted() -> bool:
        try:
            with urllib.request.urlopen(request, timeout=10):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    wait_until(posted, why="Alertmanager does not start")


def names(alerts: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["labels"]["alertname"], one["labels"]["workload"]) for one in alerts}


def test_a_cause_silences_its_symptom_in_the_same_workload_only(tmp_path: Path) -> None:
    with (
        answering(Webhook()) as receiver,
        alertmanager(tmp_path, config(receiver.url)) as address,
    ):
        fire(
            address,
            {"alertname": "NpuAndCpuTakeTurns", "workload": "chat"},
            {"alertname": "NpuFallbackHostTimeShareHigh", "workload": "chat"},
            {"alertname": "NpuFallbackHostTimeShareHigh", "workload": "search"},
            {"alertname": "NpuFallbackExporterDown", "workload": "chat"},
            {"alertname": "NpuFallbackHookNotArmed", "workload": "chat"},
            {"alertname": "NpuSmiDown", "workload": "search", "node": "n1"},
        )
        wait_until(lambda: len(receiver.alerts) >= 4, why="too few alerts")
        with urllib.request.urlopen(f"http://{address}/api/v2/alerts", timeout=10) as reply:
            held_back = [one for one in json.load(reply) if one["status"]["inhibitedBy"]]
    assert names(held_back) == {
        ("NpuFallbackHostTimeShareHigh", "chat"),
        ("NpuFallbackHookNotArmed", "chat"),
    }
    assert names(receiver.alerts) == {
        ("NpuAndCpuTakeTurns", "chat"),
        ("NpuFallbackHostTimeShareHigh", "search"),
        ("NpuFallbackExporterDown", "chat"),
        ("NpuSmiDown", "search"),
    }


def test_operators_of_a_workload_come_in_one_message(tmp_path: Path) -> None:
    with (
        answering(Webhook()) as receiver,
        alertmanager(tmp_path, config(receiver.url)) as address,
    ):
        alert = {"alertname": "NpuFallbackNewOperator", "workload": "chat"}
        fire(address, *(alert | {"op": f"aten::op{number}"} for number in range(5)))
        wait_until(lambda: receiver.alerts, why="no message")
    assert receiver.messages == 1
    assert len(receiver.alerts) == 5
