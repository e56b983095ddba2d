"""The file that the injected folder starts the hook with, in a fresh Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INJECTED = ROOT / "deploy" / "image"
WATCHED = "import sys; print([type(one).__name__ for one in sys.meta_path])"


def python(code: str, *path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    folders = ":".join(map(str, (INJECTED, ROOT, *path)))
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": folders, **variables},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize(
    ("variables", "watches"),
    [
        ({"NPU_FALLBACK_HOOK": "1"}, True),
        ({"NPU_FALLBACK_MODE": "observe"}, True),
        ({"NPU_FALLBACK_HOOK": "0"}, False),
        ({}, False),
    ],
)
def test_python_waits_for_torch_npu_only_when_the_environment_asks(
    variables: dict[str, str], watches: bool
) -> None:
    plain = python(WATCHED).stdout
    asked = python(WATCHED, **variables)
    assert (asked.stdout != plain) is watches
    assert asked.stderr == ""


def test_the_servers_own_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ['OWN'] = __file__\n")
    done = python("import os; print(os.environ['OWN'])", tmp_path, NPU_FALLBACK_HOOK="1")
    assert done.stdout == f"{tmp_path}/sitecustomize.py\n"


def test_a_failure_of_the_servers_own_sitecustomize_is_told_as_python_tells_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    done = python("print('runs on')", tmp_path, NPU_FALLBACK_HOOK="1")
    assert done.stdout == "runs on\n"
    assert "ValueError: mine" in done.stderr
