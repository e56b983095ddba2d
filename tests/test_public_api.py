"""The Python API as users write it: what it is made of, and that a type checker agrees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import npu_fallback_exporter as nfe

#: As in the documentation. ``reveal_type`` makes mypy tell what it knows.
USER_CODE = """
import npu_fallback_exporter as nfe

armed: bool = nfe.install(mode="warn")
nfe.set_mode("strict")
nfe.set_op_policy("torchvision::nms", "allow")
stats = nfe.get_fallback_stats()
total: int = stats.total
top: list[tuple[str, int]] = stats.top_ops(5)
seconds: float = stats.ops[0].seconds
place: nfe.Place | None = stats.ops[0].call_sites[0].place
with nfe.forbid_fallback(allow=["torchvision::nms"]):
    pass
nfe.uninstall()
"""

#: Each is one mistake that a type checker must find.
MISTAKES = [
    'nfe.set_op_policy("aten::fmax", "maybe")',
    "nfe.install(mode=1)",
    "nfe.get_fallback_stats().top_op(5)",
    "nfe.forbid_fallback(allow=[1])",
]


def mypy(folder: Path, code: str) -> tuple[int, str]:
    path = folder / "user.py"
    path.write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), path],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    return done.returncode, done.stdout


def test_documented_code_passes_a_strict_type_checker(tmp_path: Path) -> None:
    assert mypy(tmp_path, USER_CODE) == (0, "Success: no issues found in 1 source file\n")


def test_a_type_checker_finds_every_mistake(tmp_path: Path) -> None:
    code = "import npu_fallback_exporter as nfe\n" + "\n".join(MISTAKES) + "\n"
    _, told = mypy(tmp_path, code)
    lines = {int(line.split(":")[1]) for line in told.splitlines() if ": error:" in line}
    assert lines == set(range(2, len(MISTAKES) + 2))


def test_every_public_name_is_there() -> None:
    assert all(hasattr(nfe, name) for name in nfe.__all__)
    assert set(nfe.__all__) <= set(dir(nfe))
