"""Whether a server started with this environment would be armed, and by which way."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from ..config import ServerSettings
from .finding import Finding, ok, problem, warning
from .machine import Machine

_NAME = "npu_fallback_exporter"
_INSTALL = "pip install npu-fallback-exporter for the Python of the server"


def check(machine: Machine) -> tuple[Finding, ...]:
    """Judge the ways into a server."""
    start_up = _start_up_file(machine)
    return (
        _asked(machine.environ),
        start_up,
        _entry_points(),
        _autoload(machine.environ, start_up),
        _vllm(machine.environ, start_up),
    )


def _asked(environ: Mapping[str, str]) -> Finding:
    if ServerSettings.from_environ(environ).wanted:
        names = ("NPU_FALLBACK_HOOK", "NPU_FALLBACK_MODE")
        said = " ".join(f"{name}={environ[name]}" for name in names if environ.get(name))
        return ok("asked for", said)
    said = environ.get("NPU_FALLBACK_HOOK", "")
    text = f"NPU_FALLBACK_HOOK={said}" if said else "NPU_FALLBACK_HOOK is not set"
    return warning(
        "asked for",
        f"{text}: a server started like this is not armed",
        "set NPU_FALLBACK_HOOK=1 for the server, or start it with npu-fallback-exporter run -- CMD",
    )


def _start_up_file(machine: Machine) -> Finding:
    if sys.flags.no_site:
        return warning("start-up file", "off: this Python runs with -S", "leave -S out")
    found = [folder / f"{_NAME}.pth" for folder in machine.site_folders]
    for path in found:
        if path.is_file():
            return ok("start-up file", str(path))
    injected = [Path(part) / _NAME for part in _python_path(machine.environ)]
    for folder in injected:
        if folder.is_dir() and (folder.parent / "sitecustomize.py").is_file():
            return ok("start-up file", str(folder.parent / "sitecustomize.py"))
    return warning(
        "start-up file",
        f"{found[0]} is not there: a server that imports torch_npu before torch is not armed",
        _INSTALL,
    )


def _python_path(environ: Mapping[str, str]) -> Sequence[str]:
    return [part for part in environ.get("PYTHONPATH", "").split(":") if part]


def _entry_points() -> Finding:
    groups = ("torch.backends", "vllm.general_plugins")
    missing = [
        group for group in groups if not any(e.name == _NAME for e in entry_points(group=group))
    ]
    if not missing:
        return ok("entry points", " and ".join(groups))
    return warning("entry points", f"not registered: {', '.join(missing)}", _INSTALL)


def _autoload(environ: Mapping[str, str], start_up: Finding) -> Finding:
    if environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "0":
        return ok("autoload", "on: import torch runs the entry point torch.backends")
    text = "TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches the entry point torch.backends off"
    if start_up.next_step:
        return problem("autoload", f"{text}, and there is no start-up file", "unset it")
    return ok("autoload", f"{text}; the start-up file arms all the same")


def _vllm(environ: Mapping[str, str], start_up: Finding) -> Finding:
    listed = environ.get("VLLM_PLUGINS")
    if listed is None:
        return ok("VLLM_PLUGINS", "not set: vLLM loads every plugin")
    if _NAME in {name.strip() for name in listed.split(",")}:
        return ok("VLLM_PLUGINS", f"names {_NAME}")
    text = f"{listed!r} leaves {_NAME} out"
    if start_up.next_step:
        add = ",".join(filter(None, (listed, _NAME)))
        return warning("VLLM_PLUGINS", text, f"set VLLM_PLUGINS={add}")
    return ok("VLLM_PLUGINS", f"{text}; the start-up file arms all the same")
