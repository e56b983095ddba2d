"""A CANN runtime without a device, on which the real torch_npu wheel runs. See README.md."""

from __future__ import annotations

from tests.cann_sim.build import SimulationBuildError, build
from tests.cann_sim.environment import environment, has_real_npu, is_active
from tests.cann_sim.ledger import Ledger, Snapshot

__all__ = [
    "Ledger",
    "SimulationBuildError",
    "Snapshot",
    "build",
    "environment",
    "has_real_npu",
    "is_active",
]
