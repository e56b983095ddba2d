"""Auditing a whole program, and what the answer says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.audited import audit, audit_json

pytest.importorskip("torch")

PROGRAM = """
import argparse
import torch
import torch_npu
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=1)
batch = parser.parse_args().batch
device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).to(device).eval()
x = torch.arange(8.0 * batch, device="npu:0").reshape(batch, 8)
y = torch.tensor([1.0, 2.0], device=torch.device("npu"))
with torch.no_grad():
    for _ in range(3):
        print(torch.fmax(torch.compile(net)(x), y).cpu().numpy().shape)
print(x[x > 3].cuda().shape, (x > 3).sum().item(), x[0].npu().tolist())
weight = torch.full((3,), 2.0, device="npu", requires_grad=True)
torch.lgamma(weight).sum().backward()
with torch.autocast("npu", dtype=torch.bfloat16):
    net(x)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def findings(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["op"]: one for one in answer["findings"]}


def test_a_program_for_cuda_or_the_npu_is_followed_to_its_end(folder: Path) -> None:
    answer = audit_json("program.py", "--", "--batch", "2", cwd=folder)
    calls = {op: one["phases"]["script"]["calls"] for op, one in findings(answer).items()}
    assert calls == {"aten::fmax.out": 3, "aten::lgamma.out": 1, "aten::digamma.out": 1}


def test_bytes_are_those_of_arguments_and_results(folder: Path) -> None:
    answer = audit_json("program.py", "--", "--batch", "2", cwd=folder)
    phase = findings(answer)["aten::fmax.out"]["phases"]["script"]
    assert (phase["bytes_d2h"], phase["bytes_h2d"]) == (3 * (16 + 8 + 16), 3 * 16)


def test_the_line_that_calls_is_told(folder: Path) -> None:
    answer = audit_json("program.py", cwd=folder)
    line = (
        PROGRAM.splitlines().index(
            "        print(torch.fmax(torch.compile(net)(x), y).cpu().numpy().shape)"
        )
        + 1
    )
    assert findings(answer)["aten::fmax.out"]["call_sites"] == [
        {"module": "", "line": f"program.py:{line} in <module>", "calls": 3}
    ]


def test_what_the_program_prints_is_not_in_the_answer(folder: Path) -> None:
    done = audit("program.py", "--format", "json", "--torch-npu", "2.13.0", cwd=folder)
    json.loads(done.stdout)
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert f"torch.Size([4]) 4 {values}" in done.stderr


def test_a_program_that_raises_is_told_with_its_line(folder: Path) -> None:
    (folder / "broken.py").write_text("import torch\n\nraise ValueError('no luck')\n")
    done = audit("broken.py", cwd=folder)
    assert done.returncode == 2
    assert "broken.py raised ValueError at broken.py:3: no luck" in done.stderr


def test_a_function_of_torch_npu_is_named_when_it_is_called(folder: Path) -> None:
    (folder / "own.py").write_text(
        "import torch, torch_npu\ntorch_npu.npu_swiglu(torch.ones(4).npu())\n"
    )
    done = audit("own.py", cwd=folder)
    assert done.returncode == 2
    assert "the program calls torch_npu.npu_swiglu" in done.stderr


def test_an_unknown_value_is_assumed_and_told(folder: Path) -> None:
    (folder / "unknown.py").write_text(
        "import torch\n"
        "x = torch.ones(2048, 4096, device='npu')\n"
        "if (x > 0).all():\n"
        "    torch.lgamma(x)\n"
        "if (x > 1).any():\n"
        "    torch.digamma(x)\n"
    )
    answer = audit_json("unknown.py", cwd=folder)
    assert list(findings(answer)) == ["aten::lgamma.out"]
    assumed = {(one["what"], one["line"]) for one in answer["assumed"]}
    assert ("a value that the program reads is True", "unknown.py:3 in <module>") in assumed
    assert ("a value that the program reads is False", "unknown.py:5 in <module>") in assumed


def test_an_operator_without_any_kernel_to_ask_is_named(folder: Path) -> None:
    (folder / "bare.py").write_text(
        "import torch\n"
        "lib = torch.library.Library('bare', 'DEF')\n"
        "lib.define('op(Tensor x) -> Tensor')\n"
        "torch.ops.bare.op(torch.ones(3, device='npu'))\n"
    )
    done = audit("bare.py", cwd=folder)
    assert done.returncode == 2
    assert "bare::op has no fake kernel" in done.stderr
    assert "torch.library.register_fake" in done.stderr


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--fail-on", "any"], 1),
        (["--fail-on", "any", "--allow", "torch.fmax,aten::*gamma.out"], 0),
        (["--fail-on", "new", "--baseline", "old.json"], 1),
        (["--fail-on", "new", "--baseline", "old.json", "--allow", "aten::digamma.out"], 0),
        (["--baseline", "old.json"], 0),
    ],
)
def test_the_exit_code_is_for_ci(folder: Path, flags: list[str], code: int) -> None:
    (folder / "old.json").write_text('{"ops": ["aten::fmax.out", "aten::lgamma.out"]}')
    done = audit("program.py", *flags, cwd=folder)
    assert done.returncode == code, done.stderr


def test_a_baseline_is_written(folder: Path) -> None:
    audit("program.py", "--write-baseline", "new.json", "--torch-npu", "2.13.0", cwd=folder)
    assert json.loads((folder / "new.json").read_text()) == {
        "format": 1,
        "torch_npu": "2.13.0",
        "ops": ["aten::digamma.out", "aten::fmax.out", "aten::lgamma.out"],
    }


def test_the_table_of_this_machine_is_written(folder: Path) -> None:
    pytest.importorskip("torch_npu")
    done = audit("--dump-table", "here.tsv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "aten::fmax.out\tfallback" in (folder / "here.tsv").read_text()


def test_a_table_that_cannot_be_written_is_told_in_one_line(folder: Path) -> None:
    pytest.importorskip("torch_npu")
    done = audit("--dump-table", "missing/here.tsv", cwd=folder)
    assert done.returncode == 2
    assert "missing/here.tsv cannot be written" in done.stderr
