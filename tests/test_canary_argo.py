"""What Argo Rollouts makes of deploy/canary/argo, with a real Prometheus to ask."""

from __future__ import annotations

import json

import pytest

from npu_fallback_exporter.cli.main import main
from tests.support.canary_scenarios import BASELINE, CANDIDATE, SCENARIOS, Canaries, Scenario
from tests.support.canary_tools import (
    argo_phase,
    argo_run_phase,
    documents,
    fill_in_argo,
    query,
)
from tests.support.prometheus_process import needs_prometheus

#: What a Job of Kubernetes comes to, by the exit code of its container, under the template's
#: podFailurePolicy: 3 is tried again.
OUTCOMES = {"pass": 0, "fail": 1, "inconclusive": 3}

(QUERIES,) = documents("argo/analysis-queries.yaml")
(JOB,) = documents("argo/analysis-job.yaml")
(ROLLOUT,) = documents("argo/rollout.yaml")


def arguments(scenario: Scenario) -> dict[str, str]:
    return {"namespace": scenario.name, "stable-hash": BASELINE, "canary-hash": CANDIDATE}


@needs_prometheus
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_truth_table_by_queries(canaries: Canaries, scenario: Scenario) -> None:
    given = {**arguments(scenario), "allow": scenario.allow}
    results = {
        metric["name"]: query(
            canaries.address,
            fill_in_argo(metric["provider"]["prometheus"]["query"], QUERIES, given),
            canaries.ruled,
        )
        for metric in QUERIES["spec"]["metrics"]
    }
    phases = [argo_phase(metric, results[metric["name"]]) for metric in QUERIES["spec"]["metrics"]]
    assert argo_run_phase(phases) == scenario.queries, results


@needs_prometheus
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_truth_table_by_a_job(
    canaries: Canaries, scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    (metric,) = JOB["spec"]["metrics"]
    (container,) = metric["provider"]["job"]["spec"]["template"]["spec"]["containers"]
    given = {**arguments(scenario), "prometheus": f"http://{canaries.address}"}
    given["allow"] = ",".join(scenario.flags[1:])
    command = [fill_in_argo(text, JOB, given) for text in container["args"]]
    # The Job asks about now; the recording has ended some seconds ago.
    code = main([*command, f"--at={canaries.end}"])
    assert code == OUTCOMES[json.loads(capsys.readouterr().out)["verdict"]]
    assert code == OUTCOMES[scenario.gate]


def test_a_job_is_tried_again_only_while_it_is_inconclusive() -> None:
    spec = JOB["spec"]["metrics"][0]["provider"]["job"]["spec"]
    (rule,) = spec["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"] == {"containerName": "gate", "operator": "In", "values": [1, 2]}
    # Kubernetes allows the policy with this one only.
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert spec["backoffLimit"] > 0


@pytest.mark.parametrize("template", [QUERIES, JOB], ids=["queries", "job"])
def test_the_rollout_gives_every_argument_that_has_no_value(template: dict[str, object]) -> None:
    (analysis,) = [
        step["analysis"]
        for step in ROLLOUT["spec"]["strategy"]["canary"]["steps"]
        if "analysis" in step
    ]
    given = {arg["name"] for arg in analysis["args"]}
    spec: dict[str, list[dict[str, str]]] = template["spec"]  # type: ignore[assignment]
    assert given == {arg["name"] for arg in spec["args"] if "value" not in arg}


def test_the_rollout_names_a_template_that_is_there() -> None:
    (analysis,) = [
        step["analysis"]
        for step in ROLLOUT["spec"]["strategy"]["canary"]["steps"]
        if "analysis" in step
    ]
    names = {template["metadata"]["name"] for template in (QUERIES, JOB)}
    assert {template["templateName"] for template in analysis["templates"]} <= names
