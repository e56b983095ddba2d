"""The tables of a page: ops, slots, syncs, transfers, thread shards.

Rows never move and never change their key, so what the keys mean is decoded once and remembered
by their bytes; at a scrape only the numbers are new.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from itertools import product
from operator import add
from typing import NamedTuple

from . import layout
from .checks import check_top_bytes, check_words, corrupt, unicode
from .model import Op, SlotCounters, SlotKey, SyncKey, TransferCounters, TransferKey

_WORD = 8
_COUNTERS = struct.Struct(f"<{_WORD}x{len(SlotCounters._fields)}Q{layout.SLOT.fields[-1].size}x")
_OP = struct.Struct("<IIQ")
_OP_NAME = layout.OP_ROW.offsets["name"]
_SYNC = struct.Struct(layout.SYNC_ROW.format)
_NPU_TRANSFERS = struct.Struct(f"<{2 * layout.TRANSFER_CELLS_PER_NPU}Q")
_CELLS = tuple(product(layout.DIRECTIONS, layout.CAUSES))
_SHARDS = struct.Struct("<" + layout.PROCESS_SHARD.format.removeprefix("<") * layout.PROCESS_SHARDS)
_KEY_BITS = (1 << 63) | (0xFFFF << 16) | 0xFFFF

_ZEROS = bytes(2048)

# What is remembered of tables, two for each page. The largest takes a quarter of a megabyte, and
# those of processes that have ended stay until others take their place.
_REMEMBERED = 256


class RowKey(NamedTuple):
    """A key as numbers."""

    op_row: int
    kind: int
    npu: int


_slot_counters: Callable[[Iterable[int]], SlotCounters] = partial(tuple.__new__, SlotCounters)


class Rows:
    """A table of slots or sync rows, before the names of its ops are known.

    Args:
        table: its bytes.
        row_size: bytes of one row.
        kinds: how many kinds its keys may name.
    """

    def __init__(self, table: bytes, row_size: int, kinds: int) -> None:
        self.table = used_part(table, row_size)
        words = row_size // _WORD
        self.keys = memoryview(self.table).cast("Q")[::words].tobytes()
        self.op_rows, self.places = _keys(self.keys, kinds)
        top_bytes = bytearray(self.table[_WORD - 1 :: _WORD])
        top_bytes[::words] = bytes(len(self.places))  # keys have their top bit set
        check_top_bytes(top_bytes, "counter")


def used_part(table: bytes, row_size: int) -> bytes:
    """Return the rows up to the last that has a byte other than 0."""
    end = len(table)
    # Comparing is much faster than stripping, and most of a table is empty.
    while end >= len(_ZEROS) and table[end - len(_ZEROS) : end] == _ZEROS:
        end -= len(_ZEROS)
    return table[: -(-len(table[:end].rstrip(b"\0")) // row_size) * row_size]


def decode_shards(table: bytes) -> tuple[int, int]:
    """Return operators and device allocations, summed over the shards."""
    check_words(table, "process counter")
    numbers = _SHARDS.unpack(table)
    return sum(numbers[0::2]), sum(numbers[1::2])


@lru_cache(maxsize=_REMEMBERED // 2)
def decode_ops(table: bytes) -> tuple[Op | None, ...]:
    """Decode the op rows; None: a row whose name is not there yet."""
    size = layout.OP_ROW.size
    return tuple(_op(table[start : start + size]) for start in range(0, len(table), size))


def _op(row: bytes) -> Op | None:
    name_bytes, has_cpu_kernel, first_seen_unix_ns = _OP.unpack_from(row)
    if name_bytes == 0:
        return None
    if name_bytes > layout.OP_NAME_BYTES:
        corrupt(f"has an op name of {name_bytes} bytes")
    if has_cpu_kernel > 1:
        corrupt(f"has has_cpu_kernel {has_cpu_kernel}")
    name = unicode(row[_OP_NAME : _OP_NAME + name_bytes])
    return Op(name, bool(has_cpu_kernel), first_seen_unix_ns)


@lru_cache(maxsize=_REMEMBERED)
def _keys(column: bytes, kinds: int) -> tuple[int, tuple[RowKey | None, ...]]:
    """Return the op rows that the keys need, and the keys; None: a row that is not there yet."""
    numbers = struct.unpack(f"<{len(column) // _WORD}Q", column)
    keys = tuple(_key(number, kinds) if number else None for number in numbers)
    return max((key.op_row + 1 for key in keys if key), default=0), keys


def _key(number: int, kinds: int) -> RowKey:
    key = RowKey(number >> 16 & 0xFFFF, number >> 8 & 0xFF, number & 0xFF)
    known = key.op_row < layout.MAX_OPS and key.kind < kinds and key.npu < layout.MAX_NPUS
    if number & ~_KEY_BITS or not number >> 63 or not known:
        corrupt(f"has row key {number:#x}")
    return key


def check_other_slots(rows: Rows) -> None:
    """Raise PageError unless each slot of op ``__other__`` has the key of its place."""
    for index, key in enumerate(rows.places):
        if key and key != (0, *divmod(index, layout.MAX_NPUS)):
            corrupt(f"has row key {key} in place {index} of {layout.OTHER_OP}")


def decode_slots(rows: Rows, op_table: bytes) -> dict[SlotKey, SlotCounters]:
    """Decode slots whose ops are in `op_table`."""
    keys, distinct = _slot_keys(rows.keys, op_table)
    counters = map(_slot_counters, _COUNTERS.iter_unpack(rows.table))
    if distinct:
        return dict(zip(keys, counters, strict=True))  # type: ignore[arg-type]
    slots: dict[SlotKey, SlotCounters] = {}
    for key, numbers in zip(keys, counters, strict=True):
        if key in slots:  # two rows of one op: what tells their names apart was not UTF-8
            slots[key] = _slot_counters(map(add, slots[key], numbers))
        elif key is not None:
            slots[key] = numbers
    return slots


@lru_cache(maxsize=_REMEMBERED)
def _slot_keys(column: bytes, op_table: bytes) -> tuple[tuple[SlotKey | None, ...], bool]:
    """Return the keys by name, and whether there are no two alike and no gaps."""
    ops = decode_ops(op_table)
    _, places = _keys(column, len(layout.KINDS))
    keys = tuple(
        SlotKey(_name(ops, place), layout.KINDS[place.kind], place.npu) if place else None
        for place in places
    )
    return keys, len(set(keys)) == len(keys) and None not in keys


def decode_syncs(rows: Rows, op_table: bytes) -> dict[SyncKey, int]:
    """Decode sync rows whose ops are in `op_table`."""
    ops = decode_ops(op_table)
    syncs: dict[SyncKey, int] = {}
    for place, (_, count) in zip(rows.places, _SYNC.iter_unpack(rows.table), strict=True):
        if place is not None:
            key = SyncKey(_name(ops, place), place.npu)
            syncs[key] = syncs.get(key, 0) + count
    return syncs


def _name(ops: tuple[Op | None, ...], key: RowKey) -> str:
    op = ops[key.op_row]
    if op is None:
        corrupt(f"counts in op row {key.op_row}, which has no name")
    return op.name


def decode_transfers(table: bytes) -> dict[TransferKey, TransferCounters]:
    """Decode the cells that somebody counted in."""
    used = used_part(table, _NPU_TRANSFERS.size)
    check_words(used, "transfer counter")
    transfers: dict[TransferKey, TransferCounters] = {}
    for npu, numbers in enumerate(_NPU_TRANSFERS.iter_unpack(used)):
        for index, (direction, cause) in enumerate(_CELLS):
            counters = TransferCounters(numbers[2 * index], numbers[2 * index + 1])
            if counters.transfers or counters.bytes:
                transfers[TransferKey(direction, cause, npu)] = counters
    return transfers
