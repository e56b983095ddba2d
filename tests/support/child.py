"""Running code in a fresh Python process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent

#: What would arm, or colour the output of, a child that a test did not mean to.
_OWN_VARIABLES = (
    "NPU_FALLBACK_HOOK",
    "NPU_FALLBACK_MODE",
    "NPU_FALLBACK_ALLOW",
    "NPU_FALLBACK_DIR",
    "NPU_FALLBACK_MAX_OPS",
    "TORCH_NPU_FALLBACK_CPU_DISABLE",
    "TORCH_NPU_CPU_FALLBACK",
    "ASCEND_OPP_DISABLE_FALLBACK",
)

#: torch_npu prints this to stdout when it is imported without an installed CANN.
_TORCH_NPU_CHATTER = "Warning: ASCEND_HOME_PATH"


@dataclass(frozen=True)
class Finished:
    """How a child ended, and what it printed; ``stdout`` is without torch_npu's chatter."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def own_lines(self) -> list[str]:
        """Lines on stderr that come from this package."""
        return [line for line in self.stderr.splitlines() if "npu-fallback-exporter" in line]


def child_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without the package's variables, and with ``env``."""
    clean = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
    path = os.pathsep.join(filter(None, [str(_ROOT), clean.get("PYTHONPATH", "")]))
    return {**clean, "PYTHONPATH": path, **(env or {})}


def run_python(code: str, env: Mapping[str, str] | None = None, timeout: float = 120) -> Finished:
    """Run ``code`` with this Python and the simulated device's environment; never raises.

    Args:
        code: what ``python -c`` runs; the root of the checkout is on its path.
        env: variables on top of :func:`child_environment`.
        timeout: seconds after which the child is killed and the test fails.
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environment(env),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    lines = done.stdout.splitlines(keepends=True)
    own = "".join(line for line in lines if not line.startswith(_TORCH_NPU_CHATTER))
    return Finished(done.returncode, own, done.stderr)
