"""The page as bytes: the Python side of ``csrc/page_layout.h``.

Offsets follow from the fields below by the rules that C++ compilers use on 64-bit Linux;
:func:`differences` compares them with what the native binary says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAGIC = b"NPUFBPG\n"
LAYOUT_VERSION = 1

MAX_OPS = 512
MAX_NPUS = 128
KINDS = ("dispatcher", "explicit_kernel")
DIRECTIONS = ("d2h", "h2d")
CAUSES = ("fallback", "explicit_kernel", "sync", "user")
MODES = ("observe", "warn", "strict")
TRACKS = ("all", "fallbacks")
BOUNDARIES = ("none", "partial", "full")
MODE_SOURCES = (
    "default",
    "NPU_FALLBACK_MODE",
    "TORCH_NPU_FALLBACK_CPU_DISABLE",
    "TORCH_NPU_CPU_FALLBACK",
    "ASCEND_OPP_DISABLE_FALLBACK",
    "api",
)
GENERAL_SLOTS = 768
OTHER_SLOTS = len(KINDS) * MAX_NPUS
SLOTS = GENERAL_SLOTS + OTHER_SLOTS
SYNC_ROWS = 256
DURATION_BUCKETS = 11
SIZE_BUCKETS = 8
OP_NAME_BYTES = 168
NOTE_BYTES = 128 * 1024
NOTE_CALL_SITE = 1
NOTE_ARGUMENTS = 2
PROCESS_SHARDS = 16
HEADER_BYTES = 4096
OTHER_OP = "__other__"

CONSTANTS: Mapping[str, int] = {
    "kMaxOps": MAX_OPS,
    "kMaxNpus": MAX_NPUS,
    "kKinds": len(KINDS),
    "kGeneralSlots": GENERAL_SLOTS,
    "kOtherSlots": OTHER_SLOTS,
    "kSlots": SLOTS,
    "kSyncRows": SYNC_ROWS,
    "kDirections": len(DIRECTIONS),
    "kCauses": len(CAUSES),
    "kDurationBuckets": DURATION_BUCKETS,
    "kSizeBuckets": SIZE_BUCKETS,
    "kOpNameBytes": OP_NAME_BYTES,
    "kNoteBytes": NOTE_BYTES,
    "kProcessShards": PROCESS_SHARDS,
}

_NUMBER_BYTES = {"B": 1, "H": 2, "I": 4, "Q": 8, "q": 8}


@dataclass(frozen=True)
class Field:
    """One member of a struct.

    Attributes:
        code: a number code of :mod:`struct`, or ``s`` for text of ``count`` bytes.
        count: elements of the array, over all its dimensions.
        align: bytes; 0: the natural alignment of ``code``.
    """

    name: str
    code: str = "Q"
    count: int = 1
    align: int = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return _NUMBER_BYTES.get(self.code, 1) * self.count

    @property
    def format(self) -> str:
        """Format for :mod:`struct`, without a byte order."""
        return self.code if self.count == 1 and self.code != "s" else f"{self.count}{self.code}"


@dataclass(frozen=True)
class Struct:
    """A C struct: fields with the offsets that the alignment rules give them."""

    name: str
    fields: tuple[Field, ...]
    align: int = 8
    offsets: Mapping[str, int] = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        offsets: dict[str, int] = {}
        end = 0
        for member in self.fields:
            start = _round_up(end, member.align or _NUMBER_BYTES.get(member.code, 1))
            offsets[member.name] = start
            end = start + member.size
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "size", _round_up(end, self.align))

    @property
    def format(self) -> str:
        """Format of the whole struct for :mod:`struct`, little-endian, padding included."""
        parts = ["<"]
        end = 0
        for member in self.fields:
            parts.append(f"{self.offsets[member.name] - end}x{member.format}")
            end = self.offsets[member.name] + member.size
        parts.append(f"{self.size - end}x")
        return "".join(parts)


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


HEADER = Struct(
    "Header",
    (
        Field("magic", "s", 8),
        Field("layout_version", "I"),
        Field("page_bytes", "I"),
        Field("boot_id", "s", 40),
        Field("pid_namespace"),
        Field("start_ticks"),
        Field("random", "s", 16),
        Field("pid", "q"),
        Field("davinci_devices", count=4),
        Field("visible_devices_set"),
        Field("visible_devices", "s", 256),
        Field("torch_version", "s", 64),
        Field("torch_npu_version", "s", 64),
        Field("cann_version", "s", 64),
        Field("hook_version", "s", 64),
        Field("created_unix_ns"),
        Field("max_ops"),
        Field("mode", "I", align=64),
        Field("mode_source", "I"),
        Field("track", "I"),
        Field("boundary", "I"),
        Field("armed_ns"),
        Field("armed_since_ns"),
        Field("last_seen_ns"),
        Field("watched_with_cpu_kernel"),
        Field("watched_without_cpu_kernel"),
        Field("op_rows", align=64),
        Field("general_slots"),
        Field("sync_rows"),
        Field("ops_overflowed"),
        Field("note_bytes"),
        Field("notes_dropped"),
        Field("driver_bytes", count=len(DIRECTIONS), align=64),
        Field("driver_transfers", count=len(DIRECTIONS)),
        Field("transfer_size_buckets", count=len(DIRECTIONS) * SIZE_BUCKETS),
    ),
    align=64,
)
PROCESS_SHARD = Struct("ProcessShard", (Field("operators"), Field("device_allocations")), align=64)
OP_ROW = Struct(
    "OpRow",
    (
        Field("name_bytes", "I"),
        Field("has_cpu_kernel", "I"),
        Field("first_seen_unix_ns"),
        Field("name", "s", OP_NAME_BYTES),
        Field("reserved"),
    ),
)
SLOT = Struct(
    "Slot",
    (
        Field("key"),
        Field("events"),
        Field("blocked"),
        Field("errors"),
        Field("bytes", count=len(DIRECTIONS)),
        Field("host_ns"),
        Field("host_ns_events"),
        Field("duration_ns"),
        Field("duration_buckets", count=DURATION_BUCKETS),
        Field("reserved", count=4),
    ),
    align=64,
)
SYNC_ROW = Struct("SyncRow", (Field("key"), Field("count")))
TRANSFER_CELL = Struct("TransferCell", (Field("bytes"), Field("transfers")))
NOTE_HEADER = Struct(
    "NoteHeader",
    (
        Field("record_bytes", "I"),
        Field("type", "H"),
        Field("op_row", "H"),
        Field("unix_ns"),
        Field("text_bytes", "I"),
        Field("reserved", "I"),
    ),
)
TRANSFER_CELLS_PER_NPU = len(DIRECTIONS) * len(CAUSES)


def _table(name: str, row: Struct, rows: int) -> Field:
    return Field(name, "B", row.size * rows, align=row.align)


PAGE = Struct(
    "Page",
    (
        Field("header", "B", HEADER.size),
        Field("shards", "B", PROCESS_SHARD.size * PROCESS_SHARDS, align=HEADER_BYTES),
        _table("transfers", TRANSFER_CELL, MAX_NPUS * TRANSFER_CELLS_PER_NPU),
        _table("syncs", SYNC_ROW, SYNC_ROWS),
        _table("ops", OP_ROW, MAX_OPS),
        _table("slots", SLOT, SLOTS),
        Field("notes", "B", NOTE_BYTES),
    ),
    align=64,
)
PAGE_BYTES = PAGE.size
STRUCTS = (PAGE, HEADER, PROCESS_SHARD, OP_ROW, SLOT, SYNC_ROW, TRANSFER_CELL, NOTE_HEADER)


def row_key(op_row: int, kind: int, npu: int) -> int:
    """Key of a slot or sync row: the indexes of op row, kind (:data:`KINDS`) and NPU."""
    return (1 << 63) | (op_row << 16) | (kind << 8) | npu


def differences(binary: Mapping[str, Any]) -> list[str]:
    """Where the layout of a native binary differs from this one.

    Args:
        binary: the decoded text of its ``layout_json()``.

    Returns:
        One line for each difference; empty: they agree. Members named ``reserved`` do not count.
    """
    return list(_differences(_flatten(binary), _flatten(describe())))


def describe() -> dict[str, Any]:
    """Return this layout in the form of the native ``layout_json()``."""
    return {
        "magic": MAGIC.decode(),
        "version": LAYOUT_VERSION,
        "page_bytes": PAGE_BYTES,
        "constants": dict(CONSTANTS),
        "structs": {
            struct.name: {
                "size": struct.size,
                "fields": {
                    member.name: {"offset": struct.offsets[member.name], "size": member.size}
                    for member in struct.fields
                },
            }
            for struct in STRUCTS
        },
    }


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for path in sorted(theirs.keys() | ours.keys()):
        if theirs.get(path) != ours.get(path):
            yield f"{path}: binary {theirs.get(path)!r}, reader {ours.get(path)!r}"


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if name == "reserved":
            continue
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
