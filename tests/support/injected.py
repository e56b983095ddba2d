"""A Python with torch_npu but without this package, and the folder that brings it there."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from npu_fallback_exporter.instrument.build import build, build_boundary

_ROOT = Path(__file__).parents[2]
_OURS = ("npu_fallback_exporter", "__editable__", "_npu_fallback_exporter")


@functools.cache
def plain_python() -> Path:
    """Return the Python of a virtual environment that has what this has but the package."""
    folder = Path(tempfile.mkdtemp(prefix="npu-fallback-plain-"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    others = folder / "site"
    others.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(_OURS) and path.suffix != ".pth":
            (others / path.name).symlink_to(path)
    python = folder / "venv" / "bin" / "python"
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (Path(own) / "others.pth").write_text(f"{others}\n")
    return python


@functools.cache
def injected_folder() -> Path:
    """Return a folder as the init container leaves it on the shared volume."""
    folder = Path(tempfile.mkdtemp(prefix="npu-fallback-injected-"))
    package = folder / "npu_fallback_exporter"
    ignored = shutil.ignore_patterns("__pycache__", "hooks")
    shutil.copytree(_ROOT / "npu_fallback_exporter", package, ignore=ignored)
    hooks = package / "hooks"
    hooks.mkdir()
    for library in (build(), build_boundary()):
        shutil.copy(library, hooks)
    shutil.copy(_ROOT / "deploy" / "image" / "sitecustomize.py", folder)
    return folder
