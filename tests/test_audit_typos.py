"""Whatever is misspelt is answered in one line with the nearest names, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.audited import audit

MODEL = """
import torch

class Net(torch.nn.Module):
    def forward(self, hidden):
        return torch.relu(hidden)

def build():
    return Net()

def nothing():
    return 3

def broken():
    raise ValueError("no luck")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mymodel.py").write_text(MODEL)
    (tmp_path / "configs").mkdir()
    (tmp_path / "baseline.json").write_text('{"ops": []}')
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["mymodle:build"], "no module 'mymodle': did you mean mymodel"),
        (["mymodel:biuld"], "no factory in mymodel 'biuld': did you mean build?"),
        (["mymodel:build", "--input", "hiden=f32[2]"], "did you mean hidden?"),
        (["mymodel:build", "--input", "f23[2]"], "did you mean f32"),
        (["mymodel:nothing"], "mymodel:nothing returns a int: it must return a torch.nn.Module"),
        (["mymodel:broken"], "mymodel:broken raised ValueError at "),
        (["mymodel:build"], "the model raised TypeError"),
        (["mymodl.py"], "no script 'mymodl.py': did you mean mymodel.py?"),
        (["--hf", "confgs"], "no folder 'confgs': did you mean configs?"),
        (["--hf", "configs"], "configs has no config.json"),
        (["mymodel:build", "--torch-npu", "2.31.0"], "no table of torch_npu '2.31.0'"),
        (["mymodel:build", "--allow", "aten::fmxa.out"], "did you mean aten::fmax.out"),
        (["mymodel:build", "--baseline", "basline.json"], "did you mean baseline.json?"),
        ([], "one thing to audit is needed"),
        (["mymodel:build", "--generate", "3"], "--generate is of --hf"),
        (["mymodel:build", "--fail-on", "al"], "invalid choice: 'al'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_one_line_says_what_was_meant(folder: Path, arguments: list[str], answer: str) -> None:
    done = audit(*arguments, cwd=folder)
    assert done.returncode == 2
    assert answer in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
