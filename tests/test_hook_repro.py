"""``repro OP``: what a server recorded becomes a script that runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_fallback_exporter.cli import main as cli
from tests.support.child import child_environment, run_python
from tests.support.explicit_cases import CASES as EXPLICIT_CASES
from tests.support.explicit_cases import HIDDEN
from tests.support.fallback_cases import CASES

pytestmark = pytest.mark.usefixtures("hook_is_built")

RECORD = """
import sys, torch, torch_npu
import npu_fallback_exporter as nfe
from torch.utils import _pytree as pytree
from tests.support.fallback_cases import CASES
nfe.install("observe")
for case in CASES:
    inputs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.npu(), case.inputs())
    case.call("npu", *inputs)
"""

#: Every script in one process: each is run as ``__main__``, its output is what is compared.
RUN_ALL = """
import pathlib, runpy, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    print("##", path.stem)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of a server that has called every case."""
    folder = tmp_path_factory.mktemp("pages")
    done = run_python(RECORD, {"NPU_FALLBACK_DIR": str(folder)})
    assert done.returncode == 0, done.stderr
    return folder


def repro(capsys: pytest.CaptureFixture[str], pages: Path, op: str) -> tuple[int, str, str]:
    status = cli.main(["repro", op, "--pages", str(pages)])
    output = capsys.readouterr()
    return status, output.out, output.err


def ops_of_cases() -> Iterator[str]:
    yield from dict.fromkeys(op for case in CASES for op in case.events)


def check_that_scripts_run(
    capsys: pytest.CaptureFixture[str], pages: Path, ops: list[str], folder: Path, **variables: str
) -> None:
    """Check that the script of each operator runs, and says that it ran on the CPU."""
    for op in ops:
        status, script, error = repro(capsys, pages, op)
        assert (status, error) == (0, "")
        (folder / f"{op.replace('::', '-')}.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, str(folder)],
        env=child_environment({"NPU_FALLBACK_DIR": str(pages), **variables}),
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith(("aten", "#", "Ru", "T"))]
    expected = [
        line
        for op in sorted(ops, key=lambda op: f"{op.replace('::', '-')}.py")  # as it sorts files
        for line in (f"## {op.replace('::', '-')}", f"{op} ran on the CPU: {op}")
    ]
    told = [line for line in done.stdout.splitlines() if line.startswith(("##", "aten::"))]
    assert told == expected, said


def test_the_script_of_every_recorded_operator_runs_and_says_it_ran_on_the_cpu(
    pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ops = sorted(ops_of_cases())
    assert len(ops) > 40
    check_that_scripts_run(capsys, pages, ops, tmp_path)


def test_the_script_of_a_kernel_that_computes_on_the_host_runs_likewise(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = tmp_path_factory.mktemp("explicit")
    code = "from tests.support.explicit_cases import main; main()"
    done = run_python(code, {"NPU_FALLBACK_DIR": str(pages), "CANN_SIM_HIDE": HIDDEN})
    assert done.returncode == 0, done.stderr
    ops = sorted(case.op for case in EXPLICIT_CASES)
    check_that_scripts_run(capsys, pages, ops, tmp_path, CANN_SIM_HIDE=HIDDEN)


def test_a_script_runs_as_it_is(
    pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fmax.py"
    path.write_text(repro(capsys, pages, "torch.fmax")[1])
    done = subprocess.run(
        [sys.executable, str(path)],
        env=child_environment({"NPU_FALLBACK_DIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "aten::fmax.out ran on the CPU: aten::fmax.out"


def test_a_script_holds_the_recorded_sizes_types_and_scalars(
    pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = repro(capsys, pages, "aten::histogram.bin_ct")[1]
    for line in (
        "self = make_tensor([20], torch.float32)",
        "bins = 4",
        "range_ = [0.0, 1.0]",
        "weight = make_tensor([20], torch.float32)",
        "density = False",
        "torch.ops.aten.histogram.bin_ct(self, bins, range=range_, weight=weight, density=density)",
    ):
        assert f"\n{line}\n" in script


def test_an_operator_that_was_not_recorded_is_answered_with_near_ones(
    pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, script, error = repro(capsys, pages, "aten::fmaxx")
    assert (status, script) == (1, "")
    assert error.startswith("npu-fallback-exporter: aten::fmaxx was not recorded: recorded are ")
    assert "aten::fmax.out" in error


def test_without_pages_the_next_step_is_to_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert repro(capsys, tmp_path, "aten::fmax.out") == (
        1,
        "",
        "npu-fallback-exporter: aten::fmax.out was not recorded: "
        "name the folder of the server's pages with --pages\n",
    )


def test_an_operator_whose_arguments_were_not_recorded_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = """
import torch, torch_npu, npu_fallback_exporter as nfe
torch.lgamma(torch.ones(4).npu())
"""
    environ = {"NPU_FALLBACK_MODE": "observe", "NPU_FALLBACK_CALL_SITES": "0"}
    run_python(code, {"NPU_FALLBACK_DIR": str(tmp_path), **environ})
    status, _, error = repro(capsys, tmp_path, "torch.lgamma")
    assert status == 1
    assert "aten::lgamma.out fell back, but its arguments were not recorded: " in error
