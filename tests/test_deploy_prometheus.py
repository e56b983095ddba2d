"""deploy/prometheus: configuration, rules and their unit tests, by Prometheus's own tools."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.exporter_process import wait_until
from tests.support.prometheus_process import ask, needs_prometheus, prometheus_with
from tests.support.promql import PROMETHEUS, recorded, rules, unknown

RUNBOOK = PROMETHEUS.parents[1] / "docs" / "runbook.md"
RULE_TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))
ALERTS = {rule["alert"]: rule for rule in rules("alerts.yml")}


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        ["promtool", *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_prometheus
def test_promtool_accepts_the_configuration_and_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml")
    assert "SUCCESS" in promtool("check", "rules", "rules/recording.yml", "rules/alerts.yml")


@needs_prometheus
@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.stem)
def test_the_unit_tests_of_the_rules_pass(file: Path) -> None:
    promtool("test", "rules", str(file))


@pytest.mark.skipif(
    shutil.which("amtool") is None, reason="no amtool: apt-get install prometheus-alertmanager"
)
def test_amtool_accepts_the_configuration_of_alertmanager() -> None:
    file = str(PROMETHEUS / "alertmanager.yml")
    done = subprocess.run(
        ["amtool", "check-config", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("firing", [True, False], ids=["fires", "does not fire"])
def test_every_alert_has_a_unit_test_in_which_it(firing: bool) -> None:
    tested = {
        case["alertname"]
        for file in RULE_TESTS
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]
        for case in group.get("alert_rule_test", ())
        if bool(case["exp_alerts"]) is firing
    }
    assert tested == set(ALERTS)


@pytest.mark.parametrize("file", ["recording.yml", "alerts.yml"])
def test_rules_ask_only_for_what_is_exported_or_recorded(file: str) -> None:
    asked = {rule.get("record") or rule["alert"]: unknown(rule["expr"]) for rule in rules(file)}
    assert not {name: wrong for name, wrong in asked.items() if wrong}


def test_a_misspelt_metric_or_label_would_be_found() -> None:
    assert unknown("sum(rate(npu_fallback_event_total[5m]))") == ["npu_fallback_event_total"]
    assert unknown('npu_syncs_total{operator="x"}') == ["npu_syncs_total{operator}"]
    assert unknown('workload:npu_operators:rate5m{pod="a"}') == [
        "workload:npu_operators:rate5m{pod}"
    ]


def test_recorded_series_are_named_by_level_metric_and_operations() -> None:
    assert not [
        name for name in recorded() if not re.fullmatch(r"[a-z_]+:[a-z_]+:[a-z0-9_]+", name)
    ]


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_what_how_bad_after_how_long_and_where_to_read_on(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert "for" in rule
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{alert.lower()}"


def test_the_runbook_has_a_section_for_every_alert_and_no_other() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == list(ALERTS)
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    for section in sections:
        for question in ("**Means.**", "**Look at.**", "**Do.**"):
            assert question in section, section.split("\n")[0]


def test_the_table_of_the_runbook_has_the_thresholds_of_the_rules() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (\w+) \| (.+) \|$",
        RUNBOOK.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == list(ALERTS)
    for name, severity, for_, condition in rows:
        rule = ALERTS[name]
        assert (severity, for_) == (rule["labels"]["severity"], rule["for"]), name
        # Every number that something is compared with, as it stands in the rule.
        compared = re.findall(r"[<>=] ?([0-9.]+)", rule["expr"])
        missing = {number for number in compared if float(number)} - set(
            re.findall(r"[0-9.]*[0-9]", condition)
        )
        assert not missing, name


def kubernetes_jobs() -> dict[str, dict[str, Any]]:
    file = PROMETHEUS / "kubernetes.yml"
    jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["scrape_configs"]
    return {job["job_name"]: job for job in jobs}


#: Pods as Prometheus discovers them, and the labels that they must get.
PODS = {
    "of a Deployment": (
        {"controller_kind": "ReplicaSet", "controller_name": "chat-7f9c", "name": "chat-7f9c-x"}
        | {"label_pod_template_hash": "7f9c"},
        {"workload": "chat", "revision": "7f9c", "pod": "chat-7f9c-x"},
    ),
    "of an Argo Rollout": (
        {"controller_kind": "ReplicaSet", "controller_name": "chat-84d1", "name": "chat-84d1-y"}
        | {"label_rollouts_pod_template_hash": "84d1"},
        {"workload": "chat", "revision": "84d1", "pod": "chat-84d1-y"},
    ),
    "of a StatefulSet": (
        {"controller_kind": "StatefulSet", "controller_name": "my-chat", "name": "my-chat-0"}
        | {"label_controller_revision_hash": "my-chat-5d"},
        {"workload": "my-chat", "revision": "my-chat-5d", "pod": "my-chat-0"},
    ),
    "of a LeaderWorkerSet": (
        {"controller_kind": "StatefulSet", "controller_name": "big-0", "name": "big-0-3"}
        | {"label_leaderworkerset_sigs_k8s_io_name": "big"},
        {"workload": "big", "pod": "big-0-3"},
    ),
    "of a Ray cluster": (
        {"controller_kind": "RayCluster", "controller_name": "ray-x8", "name": "ray-x8-worker-1"}
        | {"label_ray_io_cluster": "ray"},
        {"workload": "ray", "pod": "ray-x8-worker-1"},
    ),
    "of its own": ({"name": "one"}, {"workload": "one", "pod": "one"}),
}


@needs_prometheus
def test_pods_get_the_labels_of_their_workload(tmp_path: Path) -> None:
    # Discovery itself needs a cluster, and Debian's Prometheus lacks it: the pods are written
    # down as discovery would give them, and Prometheus applies the rest of the job.
    job = kubernetes_jobs()["npu-fallback-exporter-pods"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    common = {"node_name": "node-1", "phase": "Running", "container_port_name": "npu-fallback"}
    discovered = [meta | common for meta, _ in PODS.values()]
    discovered.append({"name": "done"} | common | {"phase": "Succeeded"})
    discovered.append({"name": "other"} | common | {"container_port_name": "http"})
    targets = [
        {
            "targets": [f"127.0.0.1:{number}"],
            "labels": {"__meta_kubernetes_namespace": "ns"}
            | {f"__meta_kubernetes_pod_{name}": value for name, value in meta.items()},
        }
        for number, meta in enumerate(discovered, start=1)
    ]
    config = {"scrape_configs": [job | {"static_configs": targets}]}
    with prometheus_with(config, tmp_path) as address:
        found: list[dict[str, Any]] = []

        def targets_are_there() -> bool:
            nonlocal found
            found = (ask(address, "targets", state="active") or {}).get("activeTargets", [])
            return len(found) >= len(PODS)

        wait_until(targets_are_there, why="no targets")
    got = sorted((one["labels"] for one in found), key=json.dumps)
    same = {"job": "npu-fallback-exporter", "namespace": "ns", "node": "node-1"}
    wanted = [
        labels | same | {"instance": f"127.0.0.1:{number}"}
        for number, (_, labels) in enumerate(PODS.values(), start=1)
    ]
    assert got == sorted((dict(sorted(labels.items())) for labels in wanted), key=json.dumps)


@needs_prometheus
def test_promtool_accepts_the_jobs_for_kubernetes(tmp_path: Path) -> None:
    jobs = kubernetes_jobs()
    for job in jobs.values():
        del job["kubernetes_sd_configs"]
    file = tmp_path / "prometheus.json"
    file.write_text(json.dumps({"scrape_configs": list(jobs.values())}), encoding="utf-8")
    assert "SUCCESS" in promtool("check", "config", str(file))
