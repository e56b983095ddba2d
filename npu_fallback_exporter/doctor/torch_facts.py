"""What a child process finds out about torch and torch_npu, whatever becomes of it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..instrument.hook_path import HookTarget

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class TorchFacts:
    """What the child has told.

    Attributes:
        torch, torch_npu: facts by name, as ``torch_probe`` tells them; empty if it could not be
            imported, or is not installed.
        trouble: why the child did not tell all, in one line; empty if it did.
    """

    torch: Mapping[str, Any] = field(default_factory=dict)
    torch_npu: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""

    @property
    def target(self) -> HookTarget | None:
        """What a hook must be compiled for; None where torch cannot be imported."""
        if not self.torch:
            return None
        version = str(self.torch["version"]).split("+")[0]
        return HookTarget(version, bool(self.torch["cxx11_abi"]), platform.machine())


def gather(environ: Mapping[str, str], deadline_seconds: float) -> TorchFacts:
    """Import both in a process of its own, and wait for it at most so long. Never raises."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        try:
            child = subprocess.Popen(  # nosec B603
                [sys.executable, "-m", "npu_fallback_exporter.doctor.torch_probe"],
                env=_environment(environ),
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=said,
                start_new_session=True,
            )
        except OSError as error:
            return TorchFacts(trouble=f"cannot start {sys.executable} ({error.strerror})")
        trouble = _wait(child, deadline_seconds)
        told.seek(0)
        said.seek(0)
        answers = _answers(told.read().decode("utf-8", "replace"))
        last = _last_line(said.read().decode("utf-8", "replace"))
    if trouble == "" and child.returncode != 0:
        trouble = f"{_ending(child.returncode)}{f' ({last})' if last else ''}"
    return TorchFacts(answers.get("torch", {}), answers.get("torch_npu", {}), trouble)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Nothing is armed in the child, and torch does not import torch_npu before it is asked to."""
    ours = ("NPU_FALLBACK_MODE", "PYTHONINSPECT")
    kept = {name: value for name, value in environ.items() if name not in ours}
    path = os.pathsep.join(filter(None, [str(_ROOT), environ.get("PYTHONPATH", "")]))
    return {
        **kept,
        "NPU_FALLBACK_HOOK": "0",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "PYTHONPATH": path,
    }


def _wait(child: subprocess.Popen[bytes], seconds: float) -> str:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2.0)
        return f"no answer within {seconds:g} s"
    return ""


def _answers(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, dict):
                found.update(answer)
    return found


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
