"""``gate`` through a real Prometheus: the truth table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from npu_fallback_exporter.cli.main import main
from tests.support.canary_scenarios import BASELINE, CANDIDATE, SCENARIOS, Scenario
from tests.support.prometheus_process import needs_prometheus
from tests.support.recorded import END, Recording, prometheus_holding

pytestmark = needs_prometheus

EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    recording = Recording()
    for scenario in SCENARIOS:
        scenario.record(recording)
    with prometheus_holding(recording, tmp_path_factory.mktemp("prometheus")) as address:
        yield f"http://{address}"


def selector(namespace: str, revision: str) -> str:
    return f'namespace="{namespace}",revision="{revision}"'


def gate(prometheus: str, namespace: str, *flags: str) -> list[str]:
    sides = (f"--baseline={selector(namespace, BASELINE)}",)
    sides += (f"--candidate={selector(namespace, CANDIDATE)}",)
    return ["gate", f"--prometheus={prometheus}", *sides, f"--at={END}", *flags]


def reasons(verdict: dict[str, Any]) -> str:
    return "\n".join(reason["message"] for reason in verdict["reasons"])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_truth_table(
    prometheus: str, scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(gate(prometheus, scenario.name, *scenario.flags))
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], code) == (scenario.gate, EXIT_CODES[scenario.gate]), verdict
    assert scenario.reason in reasons(verdict)
    assert bool(verdict["reasons"]) == (scenario.gate != "pass")
