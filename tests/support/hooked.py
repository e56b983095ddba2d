"""Measuring with the hook armed in this process, next to the device's own ledger.

Only for tests that run on the simulated device. The process has one page, made when the hook is
first armed, so tests look at differences.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch_npu  # noqa: F401 - registers the device

import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument import arming
from npu_fallback_exporter.instrument.build import build
from npu_fallback_exporter.pages.model import Page
from npu_fallback_exporter.pages.page import read_page
from tests.cann_sim import Ledger, Snapshot


@dataclass
class Seen:
    """What one block of code caused, by the page and by the device's ledger.

    Attributes:
        events: events by op; ``errors`` and ``blocked`` likewise; ops with none are left out.
        kinds: events by kind.
        bytes: bytes of events to the host and back, by the page.
        transfers: bytes and copies by direction and cause ("d2h user"), by the page.
        syncs: waits for a value, by op.
        ledger: what crossed the device's boundary.
    """

    events: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    bytes: tuple[int, int] = (0, 0)
    transfers: dict[str, tuple[int, int]] = field(default_factory=dict)
    syncs: dict[str, int] = field(default_factory=dict)
    operators: int = 0
    device_allocations: int = 0
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


def own_page() -> Page | None:
    """Return this process's page; ``None`` before it was first armed."""
    hook = arming.hook()
    path = hook.page_path if hook is not None else None
    return None if path is None else read_page(str(path)).page


@contextmanager
def measured() -> Iterator[Seen]:
    """Yield an object that is filled with what the block caused when it ends."""
    ledger = Ledger()
    seen = Seen()
    torch.npu.synchronize()
    before, snapshot = _numbers(own_page()), ledger.snapshot()
    yield seen
    torch.npu.synchronize()
    after, seen.ledger = _numbers(own_page()), ledger.snapshot() - snapshot
    grown = after - before
    for (family, label), number in grown.items():
        if family in ("events", "errors", "blocked", "kinds", "syncs"):
            getattr(seen, family)[label] = number
    seen.bytes = (grown["bytes", "d2h"], grown["bytes", "h2d"])
    seen.operators = grown["process", "operators"]
    seen.device_allocations = grown["process", "device_allocations"]
    for (family, label), number in grown.items():
        if family == "transfers":
            seen.transfers[label] = (grown["transfer bytes", label], number)


def _numbers(page: Page | None) -> Counter[tuple[str, str]]:
    numbers: Counter[tuple[str, str]] = Counter()
    if page is None:
        return numbers
    for key, slot in page.slots.items():
        numbers["events", key.op] += slot.events
        numbers["errors", key.op] += slot.errors
        numbers["blocked", key.op] += slot.blocked
        numbers["kinds", key.kind] += slot.events
        numbers["bytes", "d2h"] += slot.bytes_d2h
        numbers["bytes", "h2d"] += slot.bytes_h2d
    for transfer, cell in page.transfers.items():
        label = f"{transfer.direction} {transfer.cause}"
        numbers["transfers", label] += cell.transfers
        numbers["transfer bytes", label] += cell.bytes
    for sync, count in page.syncs.items():
        numbers["syncs", sync.op] += count
    numbers["process", "operators"] = page.counters.operators
    numbers["process", "device_allocations"] = page.counters.device_allocations
    return numbers
