"""Bytes to :class:`~.model.Page`. Trusts nothing."""

from __future__ import annotations

from collections.abc import Callable

from . import layout, tables
from .header import decode_header
from .model import Page, ProcessCounters

# Reads (offset, size) and returns exactly that many bytes, or raises PageError or OSError.
Reader = Callable[[int, int], bytes]

_AT = layout.PAGE.offsets
_SHARDS_SIZE = layout.PROCESS_SHARD.size * layout.PROCESS_SHARDS
_OTHER_SLOTS_AT = _AT["slots"] + layout.GENERAL_SLOTS * layout.SLOT.size
_OTHER_SLOTS_SIZE = layout.OTHER_SLOTS * layout.SLOT.size


def decode(read: Reader, size: int) -> Page:
    """Decode and validate one page, reading only the parts in use.

    Rows are read in an order in which a row that another row refers to is read after it, so that
    a page that is being written is never taken for a corrupt one.

    Args:
        read: gives the bytes of the file.
        size: bytes of the file.

    Raises:
        PageError: empty, truncated, magic, version or corrupt, and nothing else unless `read`
            raises it.
    """
    fixed, changing = decode_header(read(0, min(size, layout.HEADER.size)), size)
    rest = read(_AT["shards"], _AT["ops"] - _AT["shards"])
    slots = _slot_rows(read(_AT["slots"], changing.general_slots * layout.SLOT.size))
    others = _slot_rows(read(_OTHER_SLOTS_AT, _OTHER_SLOTS_SIZE))
    tables.check_other_slots(others)
    syncs = tables.Rows(rest[_AT["syncs"] - _AT["shards"] :], layout.SYNC_ROW.size, 1)
    op_rows = max(changing.op_rows, slots.op_rows, others.op_rows, syncs.op_rows)
    op_table = read(_AT["ops"], op_rows * layout.OP_ROW.size)
    operators, device_allocations = tables.decode_shards(rest[:_SHARDS_SIZE])
    return Page(
        identity=fixed.identity,
        pid=fixed.pid,
        chips=fixed.chips,
        versions=fixed.versions,
        created_unix_ns=fixed.created_unix_ns,
        max_ops=fixed.max_ops,
        mode=changing.mode,
        mode_source=changing.mode_source,
        track=changing.track,
        boundary=changing.boundary,
        armed=changing.armed,
        watched_with_cpu_kernel=changing.watched_with_cpu_kernel,
        watched_without_cpu_kernel=changing.watched_without_cpu_kernel,
        counters=ProcessCounters(
            operators=operators,
            device_allocations=device_allocations,
            ops_overflowed=changing.ops_overflowed,
            driver_bytes=changing.driver_bytes,
            driver_transfers=changing.driver_transfers,
            size_buckets_d2h=changing.size_buckets_d2h,
            size_buckets_h2d=changing.size_buckets_h2d,
        ),
        ops=tuple(op for op in tables.decode_ops(op_table) if op is not None),
        slots={**tables.decode_slots(slots, op_table), **tables.decode_slots(others, op_table)},
        syncs=tables.decode_syncs(syncs, op_table),
        transfers=tables.decode_transfers(
            rest[_AT["transfers"] - _AT["shards"] : _AT["syncs"] - _AT["shards"]]
        ),
    )


def _slot_rows(table: bytes) -> tables.Rows:
    return tables.Rows(table, layout.SLOT.size, len(layout.KINDS))
