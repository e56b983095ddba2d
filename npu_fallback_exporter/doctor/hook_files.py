"""The compiled hook, the boundary library, and what would compile them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..config import ServerSettings
from ..instrument.hook_path import find, find_boundary, search_folders
from .finding import Finding, ok, problem, warning
from .machine import Machine
from .torch_facts import TorchFacts

_BUILD = "run: npu-fallback-exporter build-hook"


def check(machine: Machine, facts: TorchFacts) -> tuple[Finding, ...]:
    """Judge what is there for this torch."""
    preferred = ServerSettings.from_environ(machine.environ).hook_path
    hook = _hook(facts, preferred)
    boundary = find_boundary(preferred)
    missing = hook.next_step == _BUILD or boundary is None
    return (
        hook,
        ok("boundary library", str(boundary))
        if boundary is not None
        else warning("boundary library", "not compiled: copies at the driver are not seen", _BUILD),
        _compiler(machine.environ, needed=missing),
    )


def _hook(facts: TorchFacts, preferred: Path | None) -> Finding:
    target = facts.target
    if target is None:
        return warning("hook", "not looked for without torch", "mend torch first")
    path = find(target, preferred)
    if path is None:
        folders = ", ".join(map(str, search_folders(preferred)))
        return problem(
            "hook",
            f"none for torch {target.torch_version} on {target.machine} in {folders}",
            _BUILD,
        )
    if not os.access(path, os.R_OK):
        return problem("hook", f"{path} cannot be read", "let the server's user read it")
    return ok("hook", str(path))


def _compiler(environ: Mapping[str, str], *, needed: bool) -> Finding:
    found = {
        "CXX": _which(environ, "CXX", ("g++", "c++", "clang++")),
        "CC": _which(environ, "CC", ("gcc", "cc", "clang")),
    }
    missing = [variable for variable, path in found.items() if path is None]
    if not missing:
        return ok("compiler", " and ".join(str(path) for path in found.values()))
    words = " and ".join("C++" if variable == "CXX" else "C" for variable in missing)
    if not needed:
        return ok("compiler", f"no {words} compiler; none is needed, the hook is compiled already")
    return problem(
        "compiler",
        f"no {words} compiler, and something is not compiled yet",
        "apt-get install g++, or name compilers in CXX and CC, or bring a compiled hook in "
        "NPU_FALLBACK_HOOK_PATH",
    )


def _which(environ: Mapping[str, str], variable: str, names: tuple[str, ...]) -> str | None:
    wanted = environ.get(variable)
    path = environ.get("PATH")
    found = (shutil.which(name, path=path) for name in ((wanted,) if wanted else names))
    return next(filter(None, found), None)
