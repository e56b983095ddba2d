"""What the exporter knows of all processes together. Counters here only rise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import NamedTuple

from .pages.arm_failure import REASONS as ARM_FAILURE_REASONS
from .pages.layout import BOUNDARIES, DIRECTIONS, KINDS, SIZE_BUCKETS
from .pages.model import SlotCounters, TransferCounters, Versions
from .pages.page import REASONS
from .rises import Row

# Labels of the families, in the order of their declaration: plain tuples, because a scrape makes
# thousands of them.
SlotLabels = tuple[str, str, str]  # op, kind, npu
KindLabels = tuple[str, str]  # kind, npu
SyncLabels = tuple[str, str]  # op, npu
TransferLabels = tuple[str, str, str]  # direction, cause, npu


class Mode(NamedTuple):
    """A mode in force, and where it came from."""

    mode: str
    source: str


@dataclass(frozen=True)
class Hook:
    """What a hook says of itself."""

    versions: Versions
    track: str
    boundary: str


@dataclass
class LiveState:
    """What holds only now, and is made anew by every scan."""

    processes: int = 0
    modes: set[Mode] = field(default_factory=set)
    hooks: set[Hook] = field(default_factory=set)
    watched_with_cpu_kernel: int = 0
    watched_without_cpu_kernel: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)


_slot_counters: Callable[[Iterable[int]], SlotCounters] = partial(tuple.__new__, SlotCounters)


def _zeros() -> dict[str, Row]:
    return dict.fromkeys(DIRECTIONS, (0,) * SIZE_BUCKETS)


def _no_skips() -> dict[str, int]:
    return dict.fromkeys(REASONS, 0)


@dataclass
class Totals:
    """Sums over all processes ever seen. Times in nanoseconds, sizes in bytes.

    Attributes:
        slots: the per-op counters.
        kind_events: events over all ops; present from 0 for armed processes.
        transfers, size_buckets, syncs, operators, device_allocations: from the operator tracker;
            meaningful if `tracked`.
        driver: bytes and copies per direction; meaningful if `boundary_watched`.
        first_seen_unix_ns: of each op label.
        arm_failures: by reason; every reason is there.
        created_unix_ns: when the oldest page was made; 0: none was seen.
        live: what holds only now.
    """

    slots: dict[SlotLabels, SlotCounters] = field(default_factory=dict)
    kind_events: dict[KindLabels, int] = field(default_factory=dict)
    syncs: dict[SyncLabels, int] = field(default_factory=dict)
    transfers: dict[TransferLabels, TransferCounters] = field(default_factory=dict)
    size_buckets: dict[str, Row] = field(default_factory=_zeros)
    driver: dict[str, TransferCounters] = field(
        default_factory=lambda: dict.fromkeys(DIRECTIONS, TransferCounters(0, 0))
    )
    operators: int = 0
    device_allocations: int = 0
    ops_overflowed: int = 0
    armed_ns: int = 0
    tracked: bool = False
    boundary_watched: bool = False
    processes_finished: int = 0
    arm_failures: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(ARM_FAILURE_REASONS, 0)
    )
    skipped: dict[str, int] = field(default_factory=_no_skips)
    first_seen_unix_ns: dict[str, int] = field(default_factory=dict)
    created_unix_ns: int = 0
    live: LiveState = field(default_factory=LiveState)

    def create_kinds(self, npu: str) -> None:
        """Make the sums over all ops of one NPU present, at 0 if they are not yet."""
        for kind in KINDS:
            self.kind_events.setdefault((kind, npu), 0)

    def add_slot(self, labels: SlotLabels, risen: Row) -> None:
        """Add to one op."""
        known = self.slots.get(labels)
        self.slots[labels] = _slot_counters(map(add, known, risen) if known else risen)

    def add_kind(self, labels: KindLabels, events: int) -> None:
        """Add events to the sum over all ops of one kind and NPU, and make both kinds present."""
        self.create_kinds(labels[1])
        self.kind_events[labels] += events

    def add_sync(self, labels: SyncLabels, risen: Row) -> None:
        """Add host waits of one op."""
        self.syncs[labels] = self.syncs.get(labels, 0) + risen[0]

    def add_transfer(self, labels: TransferLabels, risen: Row) -> None:
        """Add copies of one direction and cause."""
        known = self.transfers.get(labels, TransferCounters(0, 0))
        self.transfers[labels] = TransferCounters._make(map(add, known, risen))

    def add_process(self, risen: Row) -> None:
        """Add the numbers of a process as a whole, in the order of :func:`.rises.flat`."""
        operators, allocations, overflowed, *pairs = risen
        self.operators += operators
        self.device_allocations += allocations
        self.ops_overflowed += overflowed
        for index, direction in enumerate(DIRECTIONS):
            copies = (pairs[index], pairs[len(DIRECTIONS) + index])
            self.driver[direction] = TransferCounters._make(
                map(add, self.driver[direction], copies)
            )
            start = 2 * len(DIRECTIONS) + index * SIZE_BUCKETS
            self.size_buckets[direction] = tuple(
                map(add, self.size_buckets[direction], pairs[start : start + SIZE_BUCKETS])
            )

    def watches(self, track: str, boundary: str) -> None:
        """Note what an armed process watches."""
        self.tracked |= track == "all"
        self.boundary_watched |= boundary != BOUNDARIES[0]
