"""Wheels of PyTorch and torch_npu, downloaded and unpacked without their CUDA libraries."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: What is left out of a CUDA build: the libraries that need a driver, and big tools.
_CUDA_FILES = (
    "libtorch_cuda.so",
    "libtorch_cuda_linalg.so",
    "libc10_cuda.so",
    "libtorch_nvshmem.so",
    "libcaffe2_nvrtc.so",
    "ptxas",
)


def unpack(package: str, version: str, folder: Path) -> None:
    """Unpack a package from the registry into a folder, unless it is there already.

    Args:
        package: ``torch`` or ``torch_npu``.
        version: exactly.
        folder: to be put on ``PYTHONPATH``.
    """
    if list(folder.glob(f"{package}-*.dist-info")):
        return
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        subprocess.run(
            (
                *(sys.executable, "-m", "pip", "download", "-q", "--no-deps"),
                *("-d", downloads, f"{package}=={version}"),
            ),
            check=True,
        )
        (wheel,) = Path(downloads).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if n.rpartition("/")[2] not in _CUDA_FILES]
            archive.extractall(folder, names)


def mark_as_cpu_build(torch: Path) -> None:
    """Let an unpacked CUDA build of PyTorch say of itself that it has no CUDA.

    Args:
        torch: the folder of the package.
    """
    _replace(torch / "version.py", r"(?m)^cuda\b.*$", "cuda = None")
    _replace(torch / "backends" / "cuda" / "__init__.py", r"\btorch\._C\._has_cuda\b", "False")


def _replace(path: Path, pattern: str, text: str) -> None:
    path.write_text(re.sub(pattern, text, path.read_text()))
