"""Bytes to :class:`~.model.Page`. Trusts nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from operator import add
from typing import Any, NoReturn

from ..errors import PageError
from . import layout
from .model import (
    ArmedTime,
    ChipEvidence,
    Identity,
    Op,
    Page,
    ProcessCounters,
    SlotCounters,
    SlotKey,
    SyncKey,
    TransferCounters,
    TransferKey,
    Versions,
)

# Reads (offset, size) and returns exactly that many bytes, or raises PageError or OSError.
Reader = Callable[[int, int], bytes]

_AT = layout.PAGE.offsets
_HEADER = struct.Struct(layout.HEADER.format)
_SLOT = struct.Struct(f"<{1 + len(SlotCounters._fields)}Q{layout.SLOT.fields[-1].size}x")
_SYNC = struct.Struct(layout.SYNC_ROW.format)
_OP = struct.Struct("<IIQ")
_OP_NAME = layout.OP_ROW.offsets["name"]
_SHARDS = struct.Struct("<" + layout.PROCESS_SHARD.format.removeprefix("<") * layout.PROCESS_SHARDS)
_NPU_TRANSFERS = struct.Struct(f"<{2 * layout.TRANSFER_CELLS_PER_NPU}Q")

# A counter that adds nanoseconds or bytes needs centuries to get here; random bytes do not.
_TOO_LARGE = 1 << 62
_KEY_BITS = (1 << 63) | (0xFFFF << 16) | 0xFFFF


def decode(read: Reader, size: int) -> Page:
    """Decode and validate one page.

    Rows are read in an order in which a row that another row refers to is read after it, so that
    a page that is being written is never taken for a corrupt one.

    Args:
        read: gives the bytes of the file.
        size: bytes of the file.

    Raises:
        PageError: empty, truncated, magic, version or corrupt, and nothing else unless `read`
            raises it.
    """
    header = _header(read(0, min(size, layout.HEADER.size)), size)
    rest = read(_AT["shards"], _AT["ops"] - _AT["shards"])
    used = _count(header, "general_slots", layout.GENERAL_SLOTS)
    slots = read(_AT["slots"], used * layout.SLOT.size)
    other_slots = read(
        _AT["slots"] + layout.GENERAL_SLOTS * layout.SLOT.size,
        layout.OTHER_SLOTS * layout.SLOT.size,
    )
    slot_rows = _slot_rows(slots, other_slots)
    sync_rows = _sync_rows(rest[_AT["syncs"] - _AT["shards"] :])
    op_rows = max(
        _count(header, "op_rows", layout.MAX_OPS),
        1 + max((key >> 16 & 0xFFFF for key, *_ in (*slot_rows, *sync_rows)), default=-1),
    )
    if op_rows > layout.MAX_OPS:
        _corrupt(f"refers to op row {op_rows - 1}")
    ops = _ops(read(_AT["ops"], op_rows * layout.OP_ROW.size))
    return Page(
        identity=Identity(
            boot_id=_text(header, "boot_id"),
            pid_namespace=header["pid_namespace"],
            start_ticks=header["start_ticks"],
            random=header["random"],
        ),
        pid=header["pid"],
        chips=_chips(header),
        versions=Versions(
            torch=_text(header, "torch_version"),
            torch_npu=_text(header, "torch_npu_version"),
            cann=_text(header, "cann_version"),
            hook=_text(header, "hook_version"),
        ),
        created_unix_ns=header["created_unix_ns"],
        max_ops=_count(header, "max_ops", layout.MAX_OPS - 1),
        mode=_choice(header, "mode", layout.MODES),
        mode_source=_choice(header, "mode_source", layout.MODE_SOURCES),
        track=_choice(header, "track", layout.TRACKS),
        boundary=_choice(header, "boundary", layout.BOUNDARIES),
        armed=ArmedTime(
            armed_ns=header["armed_ns"],
            since_ns=header["armed_since_ns"],
            last_seen_ns=header["last_seen_ns"],
        ),
        watched_with_cpu_kernel=header["watched_with_cpu_kernel"],
        watched_without_cpu_kernel=header["watched_without_cpu_kernel"],
        counters=_process_counters(header, rest),
        ops=tuple(op for op in ops if op is not None),
        slots=_slots(slot_rows, ops),
        syncs=_syncs(sync_rows, ops),
        transfers=_transfers(rest[_AT["transfers"] - _AT["shards"] :]),
    )


def _corrupt(what: str) -> NoReturn:
    raise PageError("corrupt", f"page {what}", "remove it; its writer is not this product")


def _header(head: bytes, size: int) -> dict[str, Any]:
    if not head:
        raise PageError("empty", "page is empty", "remove it from the pages folder")
    if not head.startswith(layout.MAGIC[: len(head)]):
        raise PageError("magic", "file is not a page", "remove it from the pages folder")
    if len(head) < layout.HEADER.size:
        raise _truncated(size)
    header = _unpack_header(head)
    if header["layout_version"] != layout.LAYOUT_VERSION:
        raise PageError(
            "version",
            f"page has layout version {header['layout_version']}, not {layout.LAYOUT_VERSION}",
            "use the same release of the package for server and exporter",
        )
    if size < layout.PAGE_BYTES:
        raise _truncated(size)
    if header["page_bytes"] != layout.PAGE_BYTES:
        _corrupt(f"says it has {header['page_bytes']} bytes")
    if header["pid"] <= 0:
        _corrupt(f"says its pid is {header['pid']}")
    for name, value in header.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if name != "davinci_devices" and not isinstance(value, bytes):
            _check(numbers, name)
    return header


def _truncated(size: int) -> PageError:
    return PageError(
        "truncated",
        f"page has {size} of {layout.PAGE_BYTES} bytes",
        "remove it from the pages folder",
    )


def _unpack_header(head: bytes) -> dict[str, Any]:
    values = iter(_HEADER.unpack(head))
    header: dict[str, Any] = {}
    for member in layout.HEADER.fields:
        if member.code == "s" or member.count == 1:
            header[member.name] = next(values)
        else:
            header[member.name] = tuple(next(values) for _ in range(member.count))
    return header


def _text(header: dict[str, Any], name: str) -> str:
    text, _, padding = header[name].partition(b"\0")
    if padding.strip(b"\0"):
        _corrupt(f"has bytes after the end of {name}")
    return _unicode(text)


def _unicode(text: bytes) -> str:
    # Bytes that are not UTF-8 stay visible and distinct, and cannot break the exposition.
    return text.decode("utf-8", "backslashreplace")


def _choice(header: dict[str, Any], name: str, names: tuple[str, ...]) -> str:
    if header[name] >= len(names):
        _corrupt(f"has {name} {header[name]}")
    index: int = header[name]
    return names[index]


def _count(header: dict[str, Any], name: str, most: int) -> int:
    count: int = header[name]
    if count > most:
        _corrupt(f"has {name} {count}, more than {most}")
    return count


def _chips(header: dict[str, Any]) -> ChipEvidence:
    words = header["davinci_devices"]
    davinci = tuple(
        64 * index + bit
        for index, word in enumerate(words)
        if word
        for bit in range(64)
        if word >> bit & 1
    )
    known = header["visible_devices_set"]
    if known > 2:
        _corrupt(f"has visible_devices_set {known}")
    value = _text(header, "visible_devices")
    return ChipEvidence(davinci, value if known == 1 else None, known == 2)


def _process_counters(header: dict[str, Any], rest: bytes) -> ProcessCounters:
    shards = _SHARDS.unpack_from(rest)
    buckets = header["transfer_size_buckets"]
    _check(shards, "process")
    return ProcessCounters(
        operators=sum(shards[0::2]),
        device_allocations=sum(shards[1::2]),
        ops_overflowed=header["ops_overflowed"],
        driver_bytes=header["driver_bytes"],
        driver_transfers=header["driver_transfers"],
        size_buckets_d2h=buckets[: layout.SIZE_BUCKETS],
        size_buckets_h2d=buckets[layout.SIZE_BUCKETS :],
    )


def _check(values: tuple[int, ...], what: str) -> None:
    if max(values) >= _TOO_LARGE:
        _corrupt(f"has an impossible {what}")


def _check_key(key: int, kinds: int) -> None:
    if key & ~_KEY_BITS or not key >> 63 or (key >> 8 & 0xFF) >= kinds:
        _corrupt(f"has row key {key:#x}")
    if (key & 0xFF) >= layout.MAX_NPUS:
        _corrupt(f"has NPU index {key & 0xFF}")


def _slot_rows(general: bytes, others: bytes) -> list[tuple[int, ...]]:
    # The writer stores a key last: a row without one is not there yet.
    rows = [row for row in _SLOT.iter_unpack(general) if row[0]]
    for index, row in enumerate(_SLOT.iter_unpack(_used(others, _SLOT.size))):
        if row[0]:
            kind, npu = divmod(index, layout.MAX_NPUS)
            if row[0] != layout.row_key(0, kind, npu):
                _corrupt(f"has row key {row[0]:#x} in a slot of {layout.OTHER_OP}")
            rows.append(row)
    for row in rows:
        _check_key(row[0], len(layout.KINDS))
        _check(row[1:], "slot")
    return rows


def _sync_rows(table: bytes) -> list[tuple[int, ...]]:
    rows = [row for row in _SYNC.iter_unpack(_used(table, _SYNC.size)) if row[0]]
    for row in rows:
        _check_key(row[0], 1)
        _check(row[1:], "sync")
    return rows


def _used(table: bytes, row_size: int) -> bytes:
    # Rows after the last byte that is not zero are empty.
    return table[: -(-len(table.rstrip(b"\0")) // row_size) * row_size]


def _ops(table: bytes) -> list[Op | None]:
    size = layout.OP_ROW.size
    return [_op(table[start : start + size]) for start in range(0, len(table), size)]


@lru_cache(maxsize=4096)  # rows never change once written, and processes of a server share them
def _op(row: bytes) -> Op | None:
    name_bytes, has_cpu_kernel, first_seen_unix_ns = _OP.unpack_from(row)
    if name_bytes == 0:
        return None
    if name_bytes > layout.OP_NAME_BYTES:
        _corrupt(f"has an op name of {name_bytes} bytes")
    if has_cpu_kernel > 1:
        _corrupt(f"has has_cpu_kernel {has_cpu_kernel}")
    name = _unicode(row[_OP_NAME : _OP_NAME + name_bytes])
    return Op(name, bool(has_cpu_kernel), first_seen_unix_ns)


@lru_cache(maxsize=16384)
def _slot_key(op: str, kind: int, npu: int) -> SlotKey:
    return SlotKey(op, layout.KINDS[kind], npu)


def _op_name(key: int, ops: list[Op | None]) -> str:
    op = ops[key >> 16 & 0xFFFF]
    if op is None:
        _corrupt(f"counts in op row {key >> 16 & 0xFFFF}, which has no name")
    return op.name


def _slots(rows: list[tuple[int, ...]], ops: list[Op | None]) -> dict[SlotKey, SlotCounters]:
    slots: dict[SlotKey, SlotCounters] = {}
    for row in rows:
        number = row[0]
        key = _slot_key(_op_name(number, ops), number >> 8 & 0xFF, number & 0xFF)
        counters = SlotCounters._make(row[1:])
        if key in slots:  # two rows of one name: names that differ only in bytes cut off
            counters = SlotCounters._make(map(add, slots[key], counters))
        slots[key] = counters
    return slots


def _syncs(rows: list[tuple[int, ...]], ops: list[Op | None]) -> dict[SyncKey, int]:
    syncs: dict[SyncKey, int] = {}
    for number, count in rows:
        key = SyncKey(_op_name(number, ops), number & 0xFF)
        syncs[key] = syncs.get(key, 0) + count
    return syncs


def _transfers(table: bytes) -> dict[TransferKey, TransferCounters]:
    size = _NPU_TRANSFERS.size
    transfers: dict[TransferKey, TransferCounters] = {}
    used = _used(table[: layout.MAX_NPUS * size], size)
    for npu, cells in enumerate(_NPU_TRANSFERS.iter_unpack(used)):
        _check(cells, "transfer")
        for index in range(layout.TRANSFER_CELLS_PER_NPU):
            counters = TransferCounters._make(cells[2 * index : 2 * index + 2])
            if counters.transfers or counters.bytes:
                direction, cause = divmod(index, len(layout.CAUSES))
                key = TransferKey(layout.DIRECTIONS[direction], layout.CAUSES[cause], npu)
                transfers[key] = counters
    return transfers
