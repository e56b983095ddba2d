"""The header of a page: who writes it, and its numbers that belong to no table."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import PageError
from . import layout
from .checks import REMOVE, check_numbers, corrupt, unicode
from .model import ArmedTime, ChipEvidence, Identity, Versions

_MAGIC_BYTES = len(layout.MAGIC)
_FIXED_BYTES = layout.HEADER.offsets["mode"]
_NAMES = [field.name for field in layout.HEADER.fields]
_FIRST_CHANGING = _NAMES.index("mode")
_STRUCT = struct.Struct(layout.HEADER.format)
_FIXED_FIELDS = layout.HEADER.fields[:_FIRST_CHANGING]
_CHANGING_FIELDS = layout.HEADER.fields[_FIRST_CHANGING:]


@dataclass(frozen=True)
class FixedHeader:
    """What the writer stored once, before the page got its name."""

    identity: Identity
    pid: int
    chips: ChipEvidence
    versions: Versions
    created_unix_ns: int
    max_ops: int


@dataclass(frozen=True)
class ChangingHeader:
    """What the writer may change at any time; pairs are per direction, d2h first."""

    mode: str
    mode_source: str
    track: str
    boundary: str
    armed: ArmedTime
    watched_with_cpu_kernel: int
    watched_without_cpu_kernel: int
    op_rows: int
    general_slots: int
    ops_overflowed: int
    driver_bytes: tuple[int, ...]
    driver_transfers: tuple[int, ...]
    size_buckets_d2h: tuple[int, ...]
    size_buckets_h2d: tuple[int, ...]


def decode_header(head: bytes, size: int) -> tuple[FixedHeader, ChangingHeader]:
    """Decode and validate.

    Args:
        head: the header, or all of a file that is shorter.
        size: bytes of the file.

    Raises:
        PageError: empty, magic, version, truncated or corrupt.
    """
    if not head:
        raise PageError("empty", "page is empty", REMOVE)
    if head[:_MAGIC_BYTES] != layout.MAGIC[: len(head)]:
        raise PageError("magic", "file is not a page", REMOVE)
    if len(head) < layout.HEADER.size:
        raise _truncated(size)
    fixed = _decode_fixed(head[:_FIXED_BYTES])
    if size < layout.PAGE_BYTES:
        raise _truncated(size)
    return fixed, _decode_changing(head)


def _truncated(size: int) -> PageError:
    return PageError("truncated", f"page has {size} of {layout.PAGE_BYTES} bytes", REMOVE)


@lru_cache(maxsize=1024)  # the same at every scrape
def _decode_fixed(head: bytes) -> FixedHeader:
    values = iter(_STRUCT.unpack(head.ljust(layout.HEADER.size, b"\0")))
    header = dict(_fields(_FIXED_FIELDS, values))
    if header["layout_version"] != layout.LAYOUT_VERSION:
        raise PageError(
            "version",
            f"page has layout version {header['layout_version']}, not {layout.LAYOUT_VERSION}",
            "use the same release of the package for server and exporter",
        )
    if header["page_bytes"] != layout.PAGE_BYTES:
        corrupt(f"says it has {header['page_bytes']} bytes")
    if header["pid"] <= 0:
        corrupt(f"says its pid is {header['pid']}")
    for name in ("pid", "pid_namespace", "start_ticks", "created_unix_ns"):
        check_numbers((header[name],), name)
    if header["max_ops"] >= layout.MAX_OPS:
        corrupt(f"has max_ops {header['max_ops']}")
    return FixedHeader(
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
        max_ops=header["max_ops"],
    )


def _decode_changing(head: bytes) -> ChangingHeader:
    values = _STRUCT.unpack(head)[_first_changing_value() :]
    check_numbers(values, "number in its header")
    header = dict(_fields(_CHANGING_FIELDS, iter(values)))
    if header["op_rows"] > layout.MAX_OPS:
        corrupt(f"has {header['op_rows']} op rows")
    if header["general_slots"] > layout.GENERAL_SLOTS:
        corrupt(f"has {header['general_slots']} slots")
    buckets = header["transfer_size_buckets"]
    return ChangingHeader(
        mode=_choice(header, "mode", layout.MODES),
        mode_source=_choice(header, "mode_source", layout.MODE_SOURCES),
        track=_choice(header, "track", layout.TRACKS),
        boundary=_choice(header, "boundary", layout.BOUNDARIES),
        armed=ArmedTime(header["armed_ns"], header["armed_since_ns"], header["last_seen_ns"]),
        watched_with_cpu_kernel=header["watched_with_cpu_kernel"],
        watched_without_cpu_kernel=header["watched_without_cpu_kernel"],
        op_rows=header["op_rows"],
        general_slots=header["general_slots"],
        ops_overflowed=header["ops_overflowed"],
        driver_bytes=header["driver_bytes"],
        driver_transfers=header["driver_transfers"],
        size_buckets_d2h=buckets[: layout.SIZE_BUCKETS],
        size_buckets_h2d=buckets[layout.SIZE_BUCKETS :],
    )


@lru_cache(maxsize=1)
def _first_changing_value() -> int:
    return sum(1 if field.code == "s" else field.count for field in _FIXED_FIELDS)


def _fields(fields: tuple[layout.Field, ...], values: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    for field in fields:
        if field.code == "s" or field.count == 1:
            yield field.name, next(values)
        else:
            yield field.name, tuple([next(values) for _ in range(field.count)])


def _text(header: dict[str, Any], name: str) -> str:
    text, _, padding = header[name].partition(b"\0")
    if padding.strip(b"\0"):
        corrupt(f"has bytes after the end of {name}")
    return unicode(text)


def _choice(header: dict[str, Any], name: str, names: tuple[str, ...]) -> str:
    index: int = header[name]
    if index >= len(names):
        corrupt(f"has {name} {index}")
    return names[index]


def _chips(header: dict[str, Any]) -> ChipEvidence:
    davinci = tuple(
        64 * index + bit
        for index, word in enumerate(header["davinci_devices"])
        for bit in range(64)
        if word >> bit & 1
    )
    state = header["visible_devices_set"]
    if state > 2:
        corrupt(f"has visible_devices_set {state}")
    value = _text(header, "visible_devices")
    return ChipEvidence(davinci, value if state == 1 else None, state not in {0, 1})
