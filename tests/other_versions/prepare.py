"""A folder in which a version of torch_npu runs with its PyTorch."""

from __future__ import annotations

from pathlib import Path

from .stand_ins import STAND_IN, add_stand_ins
from .wheels import mark_as_cpu_build, unpack


def prepare(version: str, folder: Path) -> list[Path]:
    """Download and unpack what a version of torch_npu needs; what is there already is kept.

    Args:
        version: of torch_npu, such as ``2.10.0.post7``.
        folder: where versions are kept; 0.6 GB for each PyTorch, 0.1 GB for each torch_npu.

    Returns:
        what ``PYTHONPATH`` must start with. The rest, numpy among it, comes from the Python's own
        packages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch_version = version.partition(".post")[0]
    torch = folder / f"torch-{torch_version}"
    torch_npu = folder / f"torch_npu-{version}"
    unpack("torch", torch_version, torch)
    unpack("torch_npu", version, torch_npu)
    libraries = torch / "torch" / "lib"
    if (libraries / STAND_IN).exists() or "+cpu" in (torch / "torch" / "version.py").read_text():
        return [torch, torch_npu]
    mark_as_cpu_build(torch / "torch")
    add_stand_ins(libraries)
    return [torch, torch_npu]
