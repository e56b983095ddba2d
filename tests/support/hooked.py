"""Measuring with the hook armed in this process, next to the device's own ledger.

Only for tests that run on the simulated device. The process has one page, made when the hook is
first armed, so tests look at differences.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch_npu  # noqa: F401 - registers the device

import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument.build import build
from tests.cann_sim import Ledger, Snapshot


@dataclass
class Seen:
    """What one block of code caused, by the page and by the device's ledger.

    Attributes:
        events: events by op; ``errors`` and ``blocked`` likewise; ops with none are left out.
        bytes: bytes to the host and back, by the page.
        ledger: what crossed the device's boundary.
    """

    events: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    bytes: tuple[int, int] = (0, 0)
    ledger: Snapshot | None = None

    @property
    def ledger_bytes(self) -> tuple[int, int]:
        """Bytes to the host and back, by the ledger."""
        assert self.ledger is not None
        return self.ledger.d2h_bytes, self.ledger.h2d_bytes


def arm(mode: str = "observe") -> None:
    """Arm this process, with its page in a folder of its own."""
    if "NPU_FALLBACK_DIR" not in os.environ:
        os.environ["NPU_FALLBACK_DIR"] = tempfile.mkdtemp(prefix="npu-fallback-test-")
    build()
    nfe.uninstall()
    assert nfe.install(mode)


@contextmanager
def armed(mode: str = "observe") -> Iterator[None]:
    """Arm for the length of a block."""
    arm(mode)
    try:
        yield
    finally:
        nfe.uninstall()


@contextmanager
def measured() -> Iterator[Seen]:
    """Yield an object that is filled with what the block caused when it ends."""
    ledger = Ledger()
    seen = Seen()
    torch.npu.synchronize()
    stats, snapshot = nfe.get_fallback_stats(), ledger.snapshot()
    yield seen
    torch.npu.synchronize()
    later, seen.ledger = nfe.get_fallback_stats(), ledger.snapshot() - snapshot
    for name in ("events", "errors", "blocked"):
        before = {op.op: getattr(op, name) for op in stats.ops}
        after = {op.op: getattr(op, name) for op in later.ops}
        grown = {op: count - before.get(op, 0) for op, count in after.items()}
        setattr(seen, name, {op: count for op, count in grown.items() if count})
    seen.bytes = (
        sum(op.bytes_d2h for op in later.ops) - sum(op.bytes_d2h for op in stats.ops),
        sum(op.bytes_h2d for op in later.ops) - sum(op.bytes_h2d for op in stats.ops),
    )
