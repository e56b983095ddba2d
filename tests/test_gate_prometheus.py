"""``gate`` through a real Prometheus: the truth table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from npu_fallback_exporter.cli.main import main
from tests.support.canary_scenarios import BASELINE, CANDIDATE, SCENARIOS, Canaries, Scenario
from tests.support.prometheus_process import needs_prometheus

pytestmark = needs_prometheus

EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}


def selector(namespace: str, revision: str) -> str:
    return f'namespace="{namespace}",revision="{revision}"'


def gate(canaries: Canaries, namespace: str, *flags: str) -> list[str]:
    sides = [
        f"--baseline={selector(namespace, BASELINE)}",
        f"--candidate={selector(namespace, CANDIDATE)}",
    ]
    return [
        "gate",
        f"--prometheus=http://{canaries.address}",
        *sides,
        f"--at={canaries.end}",
        *flags,
    ]


def reasons(verdict: dict[str, Any]) -> str:
    return "\n".join(reason["message"] for reason in verdict["reasons"])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_truth_table(
    canaries: Canaries, scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(gate(canaries, scenario.name, *scenario.flags))
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], code) == (scenario.gate, EXIT_CODES[scenario.gate]), verdict
    assert scenario.reason in reasons(verdict)
    assert bool(verdict["reasons"]) == (scenario.gate != "pass")
