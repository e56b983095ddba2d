"""How far the counters of a page rose between two readings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import sub
from typing import TypeVar

from .errors import PageError
from .pages.model import Page, ProcessCounters, SlotKey, SyncKey, TransferKey

_Key = TypeVar("_Key", bound=Hashable)
Row = tuple[int, ...]


@dataclass(frozen=True)
class Rise:
    """What one page adds to the totals. Rows that did not change are left out.

    Attributes:
        slots, syncs, transfers: key and, for each of its numbers, how far it rose.
        process: the same for the numbers of :func:`flat`.
    """

    slots: list[tuple[SlotKey, Row]]
    syncs: list[tuple[SyncKey, Row]]
    transfers: list[tuple[TransferKey, Row]]
    process: Row


def flat(counters: ProcessCounters) -> Row:
    """All numbers of `counters` in the order of its fields."""
    return (
        counters.operators,
        counters.device_allocations,
        counters.ops_overflowed,
        *counters.driver_bytes,
        *counters.driver_transfers,
        *counters.size_buckets_d2h,
        *counters.size_buckets_h2d,
    )


def rise(before: Page | None, now: Page) -> Rise:
    """Compare two readings of one page: `before`, which the totals hold (None: none), and `now`.

    Raises:
        PageError: corrupt, because a counter fell or a row went away.
    """
    process = flat(now.counters)
    return Rise(
        slots=_rows(before.slots if before else {}, now.slots),
        syncs=_rows(*map(_singles, (before.syncs if before else {}, now.syncs))),
        transfers=_rows(before.transfers if before else {}, now.transfers),
        process=_row(flat(before.counters), process) if before else process,
    )


def _singles(counts: Mapping[SyncKey, int]) -> dict[SyncKey, Row]:
    return {key: (count,) for key, count in counts.items()}


def _rows(before: Mapping[_Key, Row], now: Mapping[_Key, Row]) -> list[tuple[_Key, Row]]:
    if not before.keys() <= now.keys():
        raise _fell("a row went away")
    return list(_changed(before, now))


def _changed(before: Mapping[_Key, Row], now: Mapping[_Key, Row]) -> Iterable[tuple[_Key, Row]]:
    for key, row in now.items():
        old = before.get(key)
        if old is None:
            yield key, row
        elif old != row:
            yield key, _row(old, row)


def _row(before: Row, now: Row) -> Row:
    risen = tuple(map(sub, now, before))
    if min(risen) < 0:
        raise _fell("a counter went backwards")
    return risen


def _fell(what: str) -> PageError:
    return PageError(
        "corrupt", f"page changed in a way no server makes ({what})", "find out who writes to it"
    )
