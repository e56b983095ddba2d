"""Every operator that PyTorch has samples of: the audit foresees what the hook then counts.

The samples are those of PyTorch's own tests, about 2,500 calls without and as many with a backward
pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.child import child_environment

pytest.importorskip("torch_npu")
pytest.importorskip("expecttest")

#: Where PyTorch asks whether a tensor is of a subclass, or an NPU kernel has other results or
#: gradients than PyTorch's own; docs/audit.md, "What it cannot know".
_KNOWN = {
    "nn.functional.ctc_loss",
    "linalg.eigvals",
    "linalg.eigvalsh",
    "linalg.matrix_rank",
}
_KNOWN_WITH_GRADIENTS = {*_KNOWN, "nn.functional.embedding_bag", "linalg.cholesky"}


def run(where: str, gradients: str) -> dict[str, dict[str, Any]]:
    # A failed kernel would make torch_npu's queue drop all later ones.
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.audit_sweep", where, gradients],
        env=child_environment({"TASK_QUEUE_ENABLE": "0"}),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=600,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    assert done.returncode == 0, done.stderr[-2000:]
    return {line["name"]: line for line in lines}


@pytest.mark.heavy
@pytest.mark.timeout(1300)
@pytest.mark.usefixtures("hook_is_built")
@pytest.mark.parametrize(
    ("gradients", "known"), [("none", _KNOWN), ("grad", _KNOWN_WITH_GRADIENTS)]
)
def test_the_audit_foresees_what_every_operator_does(gradients: str, known: set[str]) -> None:
    device = run("device", gradients)
    audited = run("audit", gradients)
    ran = {name: line["counts"] for name, line in device.items() if "counts" in line}
    wrong = {
        name: (audited[name], counts)
        for name, counts in ran.items()
        if audited[name].get("counts") != counts and name.split()[1] not in known
    }
    print(f"{len(ran)} calls, {sum(map(bool, ran.values()))} fall back")
    assert not wrong
    assert len(ran) > 2000
    assert sum(map(bool, ran.values())) > 300
