"""What the demo runs on: an NPU, or the simulated device of a source checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npu_fallback_exporter.demo.errors import DemoError

_CHECKOUT = Path(__file__).parents[2]
_SIMULATION = "tests.cann_sim"
_PRINT_ENVIRONMENT = f"""
import json, sys
from {_SIMULATION} import build, environment
json.dump(environment(build()), sys.stdout)
"""

_SIMULATED = "a simulated NPU"

#: What a copy costs over PCIe 4.0 x16, roughly; kernels take no simulated time.
_PCIE = {"CANN_SIM_COPY_US": "20", "CANN_SIM_COPY_GBPS": "20"}


@dataclass(frozen=True)
class Device:
    """Where the workers run.

    Attributes:
        name: for people.
        count: number of devices.
        environ: environment of the workers.
        simulated: whether it is the simulated one.
    """

    name: str
    count: int
    environ: dict[str, str]
    simulated: bool


def number_of_npus() -> int:
    """Return how many NPUs the kernel driver shows in ``/dev``."""
    return sum(1 for _ in Path("/dev").glob("davinci[0-9]*"))


def simulation_is_here() -> bool:
    """Return whether this is a source checkout, which has the simulated device."""
    return (_CHECKOUT / Path(*_SIMULATION.split(".")) / "__init__.py").is_file()


def find_device(environ: Mapping[str, str] = os.environ) -> Device:
    """Return the NPU of this machine, or else the simulated device, compiling it if need be.

    Raises:
        DemoError: there is neither, or the simulated one does not compile.
    """
    count = number_of_npus()
    if count:
        return Device(f"{count} NPU{'s' * (count > 1)}", count, dict(environ), simulated=False)
    if not simulation_is_here():
        raise DemoError(
            "there is no NPU (/dev/davinci*), and the simulated one comes with the sources only",
            "run this on a machine with an NPU, or ./scripts/demo in a source checkout",
        )
    return Device(_SIMULATED, 2, _simulation_environment(environ), simulated=True)


def _simulation_environment(environ: Mapping[str, str]) -> dict[str, str]:
    done = subprocess.run(  # nosec B603 # noqa: S603 - this Python, with the text above
        [sys.executable, "-c", _PRINT_ENVIRONMENT],
        cwd=_CHECKOUT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise DemoError(
            f"the simulated NPU does not compile ({lines[-1]})",
            "run: python -m tests.cann_sim build",
        )
    simulated: dict[str, str] = json.loads(done.stdout)
    return {**_PCIE, **simulated}
