"""torch, torch_npu, CANN and the driver: which versions, and whether they fit."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from pathlib import Path

from ..instrument.build import OLDEST_TORCH
from .finding import Finding, ok, problem, warning
from .machine import Machine
from .torch_facts import TorchFacts
from .version_table import public, stated, torch_for

_VERSION = re.compile(r"^\s*version\s*=\s*\[?\s*([0-9A-Za-z.+-]+)", re.I | re.M)


def check(machine: Machine, facts: TorchFacts) -> tuple[Finding, ...]:
    """Judge the versions."""
    cann = _cann_version(machine, facts)
    return (
        ok("python", platform.python_version()),
        _torch(facts),
        _torch_npu(facts),
        *_fit(facts),
        _cann(cann, facts),
        _driver(machine.driver_info),
    )


def _torch(facts: TorchFacts) -> Finding:
    target = facts.target
    if target is None:
        installed = _installed("torch")
        if installed is None:
            return problem(
                "torch",
                "not installed for this Python",
                "run doctor with the Python of the server",
            )
        return problem(
            "torch",
            f"{installed} cannot be imported: {facts.trouble}",
            'see the whole message: python -c "import torch"',
        )
    if target.version < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        return problem(
            "torch", f"{target.torch_version} is too old for the hook", f"use {oldest} or newer"
        )
    return ok("torch", str(facts.torch["version"]))


def _torch_npu(facts: TorchFacts) -> Finding:
    if facts.torch_npu:
        return ok("torch_npu", str(facts.torch_npu["version"]))
    installed = _installed("torch-npu")
    if installed is None:
        return problem(
            "torch_npu",
            "not installed for this Python, so there is no NPU to watch",
            "install it, or run doctor with the Python of the server",
        )
    if not facts.torch:
        return warning("torch_npu", f"{installed}, not tried without torch", "mend torch first")
    return problem(
        "torch_npu",
        f"{installed} cannot be imported: {facts.trouble}",
        'source set_env.sh of CANN, then see: python -c "import torch, torch_npu"',
    )


def _fit(facts: TorchFacts) -> tuple[Finding, ...]:
    torch = str(facts.torch.get("version", "")) or _installed("torch")
    torch_npu = str(facts.torch_npu.get("version", "")) or _installed("torch-npu")
    if not torch or not torch_npu:
        return ()
    wanted = torch_for(torch_npu)
    if public(torch) == wanted:
        return (ok("they fit", f"torch_npu {torch_npu} is made for torch {wanted}"),)
    return (
        problem(
            "they fit",
            f"torch_npu {torch_npu} is made for torch {wanted}, not {torch}",
            f"install torch {wanted}, or the torch_npu for torch {public(torch)}",
        ),
    )


def _cann(cann: str, facts: TorchFacts) -> Finding:
    torch_npu = str(facts.torch_npu.get("version", "")) or _installed("torch-npu") or ""
    row = stated().get(public(torch_npu))
    wanted = f"torch_npu {torch_npu} states CANN {row.cann}" if row else ""
    if not cann:
        return warning(
            "CANN",
            "version not found" + (f"; {wanted}" if wanted else ""),
            "source set_env.sh of CANN, which sets ASCEND_HOME_PATH",
        )
    if row is None:
        reason = f"no CANN version is known for torch_npu {torch_npu}" if torch_npu else ""
        return ok("CANN", f"{cann}{f' ({reason})' if reason else ''}")
    if row.fits_cann(cann):
        return ok("CANN", f"{cann}, as torch_npu {torch_npu} states")
    return warning("CANN", f"{cann}, but {wanted}", f"use CANN {row.cann}, or another torch_npu")


def _driver(path: Path) -> Finding:
    version = _version_in(path)
    if version:
        return ok("driver", f"{version} (the matching firmware and CANN: Ascend's driver page)")
    return warning(
        "driver",
        f"no version in {path}",
        "on a machine with an NPU: install the driver; in a container: mount that file",
    )


def _cann_version(machine: Machine, facts: TorchFacts) -> str:
    told = str(facts.torch_npu.get("cann", ""))
    if told:
        return told
    home = machine.environ.get("ASCEND_HOME_PATH")
    folders = (Path(home),) if home else machine.cann_folders
    name = f"{platform.machine()}-linux/ascend_toolkit_install.info"
    found = (_version_in(folder / name) for folder in folders)
    return next(filter(None, found), "")


def _version_in(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            match = _VERSION.search(file.read(1 << 16))
    except OSError:
        return ""
    return match[1] if match else ""


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
