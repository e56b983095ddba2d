"""The counts of this process, read from its own page as the exporter reads them."""

from __future__ import annotations

from dataclasses import dataclass

from npu_fallback_exporter.instrument import arming
from npu_fallback_exporter.pages.model import Page
from npu_fallback_exporter.pages.notes import CallSite, Notes
from npu_fallback_exporter.pages.page import read_notes, read_page


@dataclass(frozen=True)
class OpStats:
    """What one operator cost in this process, over all its NPUs.

    Attributes:
        op: full overload name, such as ``aten::fmax.out``.
        kind: ``dispatcher`` or ``explicit_kernel``.
        events: calls that were computed on the host.
        blocked: calls that were refused.
        errors: calls in which the computation on the host raised, or that no host kernel takes.
        bytes_d2h: bytes that events copied from the device to the host.
        bytes_h2d: bytes that events copied back.
        seconds: wall time of the events, waiting for queued device work included.
        call_sites: where it was called from, up to five distinct places, first seen first.
    """

    op: str
    kind: str
    events: int
    blocked: int
    errors: int
    bytes_d2h: int
    bytes_h2d: int
    seconds: float
    call_sites: tuple[CallSite, ...] = ()


@dataclass(frozen=True)
class FallbackStats:
    """A snapshot of this process's counts; ``ops`` has most events first, then by name."""

    ops: tuple[OpStats, ...]

    @property
    def total(self) -> int:
        """Events of all operators and kinds."""
        return sum(op.events for op in self.ops)

    @property
    def blocked(self) -> int:
        """Refused calls of all operators and kinds."""
        return sum(op.blocked for op in self.ops)

    @property
    def errors(self) -> int:
        """Failed calls of all operators and kinds."""
        return sum(op.errors for op in self.ops)

    def top_ops(self, count: int = 10) -> list[tuple[str, int]]:
        """Return the operators with the most events, as pairs of name and events."""
        events: dict[str, int] = {}
        for op in self.ops:
            events[op.op] = events.get(op.op, 0) + op.events
        ranked = sorted(events.items(), key=lambda item: (-item[1], item[0]))
        return [(op, number) for op, number in ranked[:count] if number > 0]


def get_fallback_stats() -> FallbackStats:
    """Return what this process has counted since it was first armed.

    Empty when it never was, and in a forked child until its first event.

    Raises:
        PageError: the page of this process cannot be read any more.
    """
    hook = arming.hook()
    path = hook.page_path if hook is not None else None
    if path is None:
        return FallbackStats(())
    page = read_page(str(path)).page
    return FallbackStats(_ops_of(page, read_notes(str(path))))


def _ops_of(page: Page, notes: Notes) -> tuple[OpStats, ...]:
    merged: dict[tuple[str, str], OpStats] = {}
    for key, slot in page.slots.items():
        name = (key.op, key.kind)
        so_far = merged.get(name, OpStats(key.op, key.kind, 0, 0, 0, 0, 0, 0.0))
        merged[name] = OpStats(
            op=key.op,
            kind=key.kind,
            events=so_far.events + slot.events,
            blocked=so_far.blocked + slot.blocked,
            errors=so_far.errors + slot.errors,
            bytes_d2h=so_far.bytes_d2h + slot.bytes_d2h,
            bytes_h2d=so_far.bytes_h2d + slot.bytes_h2d,
            seconds=so_far.seconds + slot.duration_ns / 1e9,
            call_sites=notes.call_sites.get(key.op, ()),
        )
    return tuple(sorted(merged.values(), key=lambda op: (-op.events, op.op, op.kind)))
