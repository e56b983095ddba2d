"""A machine for ``doctor`` in a folder of a test: all outside the interpreter is made here."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from npu_fallback_exporter.doctor.finding import Finding
from npu_fallback_exporter.doctor.machine import Machine

TABLE_910B3 = "info/910b3_23.0.7_8cards_idle.txt"


def machine(folder: Path, **changes: Any) -> Machine:
    """Return a machine without NPU, driver, CANN and variables of ours; ``changes`` are its fields.

    Variables go on top of those that Python and the simulated device need.
    """
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "ASCEND_GLOBAL_LOG_LEVEL")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    environ.update(changes.pop("environ", {}))
    fields: dict[str, Any] = {
        "npu_smi": str(folder / "npu-smi"),
        "devices": folder / "dev",
        "driver_info": folder / "version.info",
        "cann_folders": (folder / "cann",),
        "site_folders": (folder / "site",),
        **changes,
    }
    return Machine(environ=environ, **fields)


def one(findings: Iterable[Finding], name: str) -> Finding:
    """Return the only finding of that name."""
    (found,) = [finding for finding in findings if finding.name == name]
    return found


def judged(findings: Iterable[Finding], name: str) -> tuple[str, str]:
    """Return status and next step of the only finding of that name."""
    found = one(findings, name)
    return found.status.value, found.next_step


@contextmanager
def taken_port() -> Iterator[int]:
    """Give the number of a port on which somebody listens and never answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(8)
        yield taken.getsockname()[1]
