"""Asking the audit, and counting the same model with the armed hook, each in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.child import Finished, child_environment, run_python

MODELS = "tests.support.audit_models"


def audit(*arguments: str, cwd: Path | None = None, timeout: float = 200) -> Finished:
    """Run the verb ``audit`` as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "npu_fallback_exporter", "audit", *arguments],
        env=child_environment(),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def audit_json(*arguments: str, cwd: Path | None = None) -> dict[str, Any]:
    """Return what ``audit --format json`` answers; the test fails when it does not answer."""
    done = audit("--torch-npu", "2.13.0", "--format", "json", *arguments, cwd=cwd)
    assert done.returncode in {0, 1}, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def predicted(answer: dict[str, Any], *phases: str) -> dict[str, list[int]]:
    """Return calls and bytes each way of what surely falls back, by operator, over some phases."""
    found: dict[str, list[int]] = {}
    for one in answer["findings"]:
        if one["verdict"] != "falls back":
            continue
        numbers = [
            sum(calls[key] for phase, calls in one["phases"].items() if phase in phases)
            for key in ("calls", "bytes_d2h", "bytes_h2d")
        ]
        if numbers[0]:
            found[one["op"]] = numbers
    return found


_COUNT = """
import json, sys, tempfile, os
os.environ["NPU_FALLBACK_DIR"] = tempfile.mkdtemp()
import torch, torch_npu
import npu_fallback_exporter as nfe
from npu_fallback_exporter.audit.input_spec import parse_inputs
from npu_fallback_exporter.audit.samples import sample
import importlib
from npu_fallback_exporter.instrument.build import build
build()
assert nfe.install("observe")

def counts():
    return {
        (one.op, one.kind): [one.events, one.bytes_d2h, one.bytes_h2d]
        for one in nfe.get_fallback_stats().ops
    }

answers = {}
for name, specs in json.loads(sys.argv[1]).items():
    torch.manual_seed(0)
    model = getattr(importlib.import_module(MODELS), name)().npu().eval()
    positional, named = [], {}
    for spec in parse_inputs(specs):
        tensor = sample(spec).npu()
        if spec.name is None:
            positional.append(tensor)
        else:
            named[spec.name] = tensor
    torch.npu.synchronize()
    before = counts()
    with torch.no_grad():
        model(*positional, **named)
    torch.npu.synchronize()
    grown = {}
    for key, numbers in counts().items():
        rise = [now - then for now, then in zip(numbers, before.get(key, [0, 0, 0]))]
        if rise[0]:
            grown[" ".join(key)] = rise
    answers[name] = grown
print("ANSWER " + json.dumps(answers))
"""


def counted(inputs: Mapping[str, Sequence[str]]) -> dict[str, dict[str, list[int]]]:
    """Return what the armed hook counts in one forward of each model: events and bytes each way.

    By model, then by operator and kind (``aten::fmax.out dispatcher``).
    """
    code = f"import sys; sys.argv[1:] = [{json.dumps(inputs)!r}]\nMODELS = {MODELS!r}\n{_COUNT}"
    done = run_python(code, timeout=280)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("ANSWER "))
    answers: dict[str, dict[str, list[int]]] = json.loads(line.removeprefix("ANSWER "))
    return answers
