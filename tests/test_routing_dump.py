"""The table that is read from the dispatcher of a fresh process, on the simulated device."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from npu_fallback_exporter.routing import table as tables
from npu_fallback_exporter.routing.table import Route

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("torch_npu") is None, reason="needs torch_npu and PyTorch"
    ),
]

CHILD = """
import json, sys
from pathlib import Path
from npu_fallback_exporter.routing.dump import write_table
write_table(sys.argv[1])
import torch
import npu_fallback_exporter as nfe
from npu_fallback_exporter.pages.page import read_page
touched = torch.npu.is_initialized()
nfe.install(mode="observe")
write_table(sys.argv[2])
(path,) = Path(sys.argv[3]).glob("*.page")
page = read_page(str(path)).page
print(json.dumps({
    "touched": touched,
    "with_cpu": page.watched_with_cpu_kernel,
    "without_cpu": page.watched_without_cpu_kernel,
}))
"""

# Dense tensors never come to these kernels, so the hook counts them with what it watches.
ONLY_OF_SPARSE_CSR = ("aten::_sparse_csr_prod.dim_dtype", "aten::_sparse_csr_sum.dim_dtype")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dump")


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    pages = folder / "pages"
    pages.mkdir()
    arguments = [str(folder / "unarmed.tsv"), str(folder / "armed.tsv"), str(pages)]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, *arguments],
        env={**os.environ, "NPU_FALLBACK_DIR": str(pages), "NPU_FALLBACK_HOOK": "0"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


@pytest.mark.usefixtures("told")
def test_the_package_carries_the_table_of_this_version_as_it_is_read_here(folder: Path) -> None:
    carried = tables.render(tables.load(version("torch_npu")))
    assert (folder / "unarmed.tsv").read_text() == carried


@pytest.mark.usefixtures("told")
def test_an_armed_process_has_the_same_table(folder: Path) -> None:
    assert (folder / "armed.tsv").read_text() == (folder / "unarmed.tsv").read_text()


def test_what_falls_back_in_the_table_is_what_the_hook_watches(told: dict[str, Any]) -> None:
    counts = tables.load(version("torch_npu")).counts()
    assert counts[Route.FALLBACK] == told["with_cpu"]
    assert counts[Route.UNSUPPORTED] + len(ONLY_OF_SPARSE_CSR) == told["without_cpu"]


def test_reading_the_table_does_not_touch_the_device(told: dict[str, Any]) -> None:
    assert told["touched"] is False


def test_public_python_names_are_those_of_the_installed_pytorch() -> None:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _NAMES],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr


_NAMES = """
from tests.other_versions.python_names import TARGET, rows
assert TARGET.read_text() == "\\n".join(rows()) + "\\n"
"""


def test_explain_reads_the_dispatcher_where_torch_npu_is_installed() -> None:
    command = ["explain", "aten::add.Tensor", "--format", "json"]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "npu_fallback_exporter", *command],
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    told = json.loads(result.stdout)
    assert told["source"] == "dispatcher"
    assert "RegisterNPU.cpp" in told["operators"][0]["registered_at"]
