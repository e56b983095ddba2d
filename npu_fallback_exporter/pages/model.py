"""What a page says, decoded. All times are in nanoseconds, all sizes in bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True)
class Identity:
    """What tells one writer from every other, pid reuse and pid namespaces included."""

    boot_id: str
    pid_namespace: int
    start_ticks: int
    random: bytes

    @cached_property
    def digest(self) -> str:
        """A short name: 32 hex digits."""
        parts = (self.boot_id, self.pid_namespace, self.start_ticks, self.random)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Versions:
    """Versions that the hook saw; empty: not known."""

    torch: str
    torch_npu: str
    cann: str
    hook: str


@dataclass(frozen=True)
class ChipEvidence:
    """What decides the physical chip of a logical NPU index, as seen when arming.

    Attributes:
        davinci: the numbers N of ``/dev/davinciN``, ascending.
        visible_devices: value of ``ASCEND_RT_VISIBLE_DEVICES``; None: not set.
        visible_devices_lost: it was set to something too long for the page.
    """

    davinci: tuple[int, ...]
    visible_devices: str | None
    visible_devices_lost: bool


@dataclass(frozen=True)
class ArmedTime:
    """Armed spans of the writer, on its host's CLOCK_MONOTONIC.

    Attributes:
        armed_ns: length of the spans that ended.
        since_ns: start of the span that goes on; 0: none.
        last_seen_ns: the last event, or the exit.
    """

    armed_ns: int
    since_ns: int
    last_seen_ns: int

    @property
    def ever(self) -> bool:
        """Whether the writer was ever armed."""
        return self.armed_ns > 0 or self.since_ns > 0

    def until_ns(self, end_ns: int) -> int:
        """How long it was armed, if the span that goes on ended at `end_ns`."""
        running = max(0, end_ns - self.since_ns) if self.since_ns else 0
        return self.armed_ns + running

    @property
    def until_last_seen_ns(self) -> int:
        """How long it was armed for certain."""
        return self.until_ns(self.last_seen_ns)


class Op(NamedTuple):
    """One row of the op table."""

    name: str
    has_cpu_kernel: bool
    first_seen_unix_ns: int


class SlotKey(NamedTuple):
    """What a slot counts: op name, kind, logical NPU index."""

    op: str
    kind: str
    npu: int


class SlotCounters(NamedTuple):
    """The numbers of a slot, in the page's order; buckets are not cumulative."""

    events: int
    blocked: int
    errors: int
    bytes_d2h: int
    bytes_h2d: int
    host_ns: int
    host_ns_events: int
    duration_ns: int
    bucket_10us: int
    bucket_30us: int
    bucket_100us: int
    bucket_300us: int
    bucket_1ms: int
    bucket_3ms: int
    bucket_10ms: int
    bucket_30ms: int
    bucket_100ms: int
    bucket_1s: int
    bucket_inf: int


FIRST_BUCKET = SlotCounters._fields.index("bucket_10us")


class SyncKey(NamedTuple):
    """What a sync row counts: op name, logical NPU index."""

    op: str
    npu: int


class TransferKey(NamedTuple):
    """What a transfer cell counts: direction, cause, logical NPU index."""

    direction: str
    cause: str
    npu: int


class TransferCounters(NamedTuple):
    """The numbers of a transfer cell."""

    bytes: int
    transfers: int


@dataclass(frozen=True)
class ProcessCounters:
    """Numbers of the process as a whole; pairs are per direction, d2h first."""

    operators: int
    device_allocations: int
    ops_overflowed: int
    driver_bytes: tuple[int, ...]
    driver_transfers: tuple[int, ...]
    size_buckets_d2h: tuple[int, ...]
    size_buckets_h2d: tuple[int, ...]


@dataclass(frozen=True)
class Page:
    """One page, validated. Rows that nobody has counted in are left out."""

    identity: Identity
    pid: int
    chips: ChipEvidence
    versions: Versions
    created_unix_ns: int
    max_ops: int
    mode: str
    mode_source: str
    track: str
    boundary: str
    armed: ArmedTime
    watched_with_cpu_kernel: int
    watched_without_cpu_kernel: int
    counters: ProcessCounters
    ops: tuple[Op, ...]
    slots: Mapping[SlotKey, SlotCounters]
    syncs: Mapping[SyncKey, int]
    transfers: Mapping[TransferKey, TransferCounters]
