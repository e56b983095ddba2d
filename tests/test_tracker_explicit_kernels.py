"""NPU kernels of torch_npu that compute on the host: kind explicit_kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.child import run_python
from tests.support.explicit_cases import CASES, HIDDEN

OPS = [case.op for case in CASES]
ALWAYS = [case.op for case in CASES if not case.hides]

pytestmark = pytest.mark.usefixtures("hook_is_built")


def run_cases(folder: Path, **variables: str) -> dict[str, dict[str, Any]]:
    code = "from tests.support.explicit_cases import main; main()"
    done = run_python(code, {"NPU_FALLBACK_DIR": str(folder), **variables})
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["op"]: line for line in lines}


@pytest.fixture(scope="module", params=["0", "1", "2"], ids=lambda queue: f"queue{queue}")
def without_symbols(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What each case does where its aclnn symbols are missing, by op, in each queue mode."""
    folder = tmp_path_factory.mktemp("pages")
    return run_cases(folder, CANN_SIM_HIDE=HIDDEN, TASK_QUEUE_ENABLE=request.param)


@pytest.fixture(scope="module")
def with_symbols(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each case does where nothing is missing, by op."""
    return run_cases(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("op", OPS)
def test_a_kernel_that_computes_on_the_host_is_one_event(
    without_symbols: dict[str, dict[str, Any]], op: str
) -> None:
    assert without_symbols[op]["events"] == {op: 1}
    assert without_symbols[op]["kinds"] == {"explicit_kernel": 1}


@pytest.mark.parametrize("op", OPS)
def test_bytes_of_such_an_event_are_those_of_the_ledger(
    without_symbols: dict[str, dict[str, Any]], op: str
) -> None:
    seen = without_symbols[op]
    assert seen["bytes"] == seen["ledger_bytes"]
    assert {cause: bytes_ for cause, (bytes_, _) in seen["transfers"].items()} == {
        "d2h explicit_kernel": seen["bytes"][0],
        "h2d explicit_kernel": seen["bytes"][1],
    }


@pytest.mark.parametrize("op", OPS)
def test_results_of_such_a_kernel_are_those_of_the_cpu(
    without_symbols: dict[str, dict[str, Any]], op: str
) -> None:
    assert without_symbols[op]["same"]


@pytest.mark.parametrize("op", sorted(set(OPS) - set(ALWAYS)))
def test_the_same_kernel_with_its_symbol_is_no_event(
    with_symbols: dict[str, dict[str, Any]], op: str
) -> None:
    assert with_symbols[op]["events"] == {}
    assert with_symbols[op]["same"]
