"""The environment in which torch_npu finds the simulated libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: With one of these, torch_npu goes looking for an installed CANN.
_REAL_INSTALLATION = ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH")


def environment(libraries: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the complete environment for a child process that uses the simulation.

    Args:
        libraries: the folder that :func:`tests.cann_sim.build` returned.
        base: what to start from; this process's environment when left out.
    """
    result = dict(os.environ if base is None else base)
    for name in _REAL_INSTALLATION:
        result.pop(name, None)
    search = [p for p in result.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
    if str(libraries) not in search:
        search.insert(0, str(libraries))
    result["LD_LIBRARY_PATH"] = os.pathsep.join(search)
    # At "warning", torch_npu tells the runtime which operator names it did not find.
    result.setdefault("ASCEND_GLOBAL_LOG_LEVEL", "2")
    return result


def is_active(libraries: Path) -> bool:
    """Return whether this process was started so that it finds the simulated libraries."""
    return str(libraries) in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)


def has_real_npu() -> bool:
    """Return whether this machine has a device, from which the simulation must stay away."""
    return any(Path("/dev").glob("davinci[0-9]*"))
