"""What Flagger makes of deploy/canary/flagger, with a real Prometheus to ask."""

from __future__ import annotations

import re

import pytest

from tests.support.canary_scenarios import SCENARIOS, Canaries, Scenario
from tests.support.canary_tools import documents, fill_in_flagger, flagger_promotes, query
from tests.support.prometheus_process import needs_prometheus

TEMPLATES = {
    template["metadata"]["name"]: template
    for template in documents("flagger/metric-templates.yaml")
}
(CANARY,) = documents("flagger/canary.yaml")
METRICS = CANARY["spec"]["analysis"]["metrics"]


@needs_prometheus
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_truth_table(canaries: Canaries, scenario: Scenario) -> None:
    results = {}
    for metric in METRICS:
        variables = dict(metric.get("templateVariables", {}))
        if scenario.allow and "allow" in variables:
            variables["allow"] = scenario.allow
        text = fill_in_flagger(
            TEMPLATES[metric["templateRef"]["name"]]["spec"]["query"],
            {**metric, "templateVariables": variables},
            scenario.name,
            CANARY["spec"]["targetRef"]["name"],
        )
        # It takes the last series of an answer, and a # in a query swallows the rest of it.
        assert "#" not in text
        results[metric["name"]] = query(canaries.address, text, canaries.ruled)
        assert len(results[metric["name"]]) <= 1
    promoted = all(flagger_promotes(metric, results[metric["name"]]) for metric in METRICS)
    assert promoted == (scenario.queries == "Successful"), results


def test_the_canary_uses_every_template_with_the_limits_of_argo() -> None:
    (argo,) = documents("argo/analysis-queries.yaml")
    limits = {
        metric["name"]: float(re.findall(r"[\d.]+$", metric["successCondition"])[0])
        for metric in argo["spec"]["metrics"]
    }
    used = {metric["templateRef"]["name"]: metric["thresholdRange"]["max"] for metric in METRICS}
    assert used == {f"npu-fallback-{name}": limit for name, limit in limits.items()}
    assert used.keys() == TEMPLATES.keys()


def test_the_first_checks_which_have_no_data_yet_do_not_roll_back() -> None:
    analysis = CANARY["spec"]["analysis"]
    assert (analysis["interval"], analysis["threshold"]) == ("5m", 5)
    # Window and warm-up take 15 minutes.
    assert analysis["threshold"] * 5 > 15
