"""Pages for tests, written field by field from the layout, as a server would leave them."""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.pages.layout import Struct

_numbers = count(1)
_F_OFD_SETLK = 37
SECOND_NS = 1_000_000_000


class PageFactory:
    """One page. Every new one has an identity of its own, is armed since second 100 and tracks all.

    Attributes:
        data: its bytes, to be damaged at will.
    """

    def __init__(self, **header: object) -> None:
        number = next(_numbers)
        self.data = bytearray(layout.PAGE_BYTES)
        self._op_rows: dict[str, int] = {}
        self._slot_rows: dict[tuple[str, str, int], int] = {}
        self._note_bytes = 0
        self._sync_rows: dict[tuple[str, int], int] = {}
        values: dict[str, object] = {
            "magic": layout.MAGIC,
            "layout_version": layout.LAYOUT_VERSION,
            "page_bytes": layout.PAGE_BYTES,
            "boot_id": b"11111111-2222-3333-4444-555555555555",
            "pid_namespace": 4026531836,
            "start_ticks": 1000 + number,
            "random": number.to_bytes(16, "little"),
            "pid": 100 + number,
            "torch_version": b"2.13.0",
            "torch_npu_version": b"2.13.0",
            "cann_version": b"8.5.0",
            "hook_version": b"0.1.0",
            "created_unix_ns": number * SECOND_NS,
            "max_ops": 256,
            "mode": layout.MODES.index("warn"),
            "armed_since_ns": 100 * SECOND_NS,
            "last_seen_ns": 100 * SECOND_NS,
        }
        self.set(**{**values, **header})
        self.op(layout.OTHER_OP)

    def set(self, **header: object) -> PageFactory:
        """Set fields of the header; arrays are tuples."""
        for name, value in header.items():
            self._put(layout.HEADER, 0, name, value)
        return self

    def op(self, name: str | bytes, first_seen_unix_ns: int = 0, has_cpu_kernel: int = 1) -> int:
        """Row of an op, made if it is new."""
        raw = name.encode() if isinstance(name, str) else name
        key = repr(raw)
        if key not in self._op_rows:
            row = self._op_rows[key] = len(self._op_rows)
            start = layout.PAGE.offsets["ops"] + row * layout.OP_ROW.size
            self._put(layout.OP_ROW, start, "name", raw)
            self._put(layout.OP_ROW, start, "has_cpu_kernel", has_cpu_kernel)
            self._put(layout.OP_ROW, start, "first_seen_unix_ns", first_seen_unix_ns)
            self._put(layout.OP_ROW, start, "name_bytes", len(raw))
            self.set(op_rows=len(self._op_rows))
        return self._op_rows[key]

    def slot(
        self,
        op: str | bytes,
        kind: str = "dispatcher",
        npu: int = 0,
        first_seen_unix_ns: int = 0,
        **counters: object,
    ) -> PageFactory:
        """Set counters of a slot, made if it is new. Of op ``__other__`` it is the fixed one."""
        op_row = self.op(op, first_seen_unix_ns)
        key = (repr(op), kind, npu)
        kind_index = layout.KINDS.index(kind)
        if op_row == 0:
            index = layout.GENERAL_SLOTS + kind_index * layout.MAX_NPUS + npu
        else:
            index = self._slot_rows.setdefault(key, len(self._slot_rows))
            self.set(general_slots=len(self._slot_rows))
        start = layout.PAGE.offsets["slots"] + index * layout.SLOT.size
        for name, value in counters.items():
            self._put(layout.SLOT, start, name, value)
        self._put(layout.SLOT, start, "key", layout.row_key(op_row, kind_index, npu))
        return self

    def events(self, op: str, events: int, npu: int = 0, kind: str = "dispatcher") -> PageFactory:
        """Set a slot to `events` events of 1 ms each that move 72 bytes to the host and 24 back."""
        buckets = [0] * layout.DURATION_BUCKETS
        buckets[4] = events
        return self.slot(
            op,
            kind,
            npu,
            events=events,
            bytes=(72 * events, 24 * events),
            host_ns=500_000 * events,
            host_ns_events=events,
            duration_ns=1_000_000 * events,
            duration_buckets=tuple(buckets),
        )

    def sync(self, op: str, count: int, npu: int = 0) -> PageFactory:
        """Set the count of a sync row, made if it is new."""
        index = self._sync_rows.setdefault((op, npu), len(self._sync_rows))
        start = layout.PAGE.offsets["syncs"] + index * layout.SYNC_ROW.size
        self._put(layout.SYNC_ROW, start, "count", count)
        self._put(layout.SYNC_ROW, start, "key", layout.row_key(self.op(op), 0, npu))
        return self.set(sync_rows=len(self._sync_rows))

    def transfer(
        self, direction: str, cause: str, size: int, transfers: int, npu: int = 0
    ) -> PageFactory:
        """Set a transfer cell: bytes and copies."""
        index = layout.DIRECTIONS.index(direction) * len(layout.CAUSES)
        index += layout.CAUSES.index(cause) + npu * layout.TRANSFER_CELLS_PER_NPU
        start = layout.PAGE.offsets["transfers"] + index * layout.TRANSFER_CELL.size
        self._put(layout.TRANSFER_CELL, start, "bytes", size)
        self._put(layout.TRANSFER_CELL, start, "transfers", transfers)
        return self

    def shard(self, index: int, operators: int, device_allocations: int) -> PageFactory:
        """Set the numbers of one thread shard."""
        start = layout.PAGE.offsets["shards"] + index * layout.PROCESS_SHARD.size
        self._put(layout.PROCESS_SHARD, start, "operators", operators)
        self._put(layout.PROCESS_SHARD, start, "device_allocations", device_allocations)
        return self

    def note(self, note_type: int, op_row: int, content: object) -> PageFactory:
        """Append a note of an op: its JSON."""
        text = json.dumps(content).encode()
        header = struct.Struct(layout.NOTE_HEADER.format)
        size = header.size + (len(text) + 7 & ~7)
        at = layout.PAGE.offsets["notes"] + self._note_bytes
        header.pack_into(self.data, at, size, note_type, op_row, 0, len(text), 0)
        self.data[at + header.size : at + header.size + len(text)] = text
        self._note_bytes += size
        return self.set(note_bytes=self._note_bytes)

    @property
    def name(self) -> str:
        """File name that the writer of this page gives it."""
        header = struct.unpack(layout.HEADER.format, self.data[: layout.HEADER.size])
        random, pid, ticks = header[6], header[7], header[5]
        return f"{pid}-{ticks}-{random.hex()}.page"

    def write(self, folder: Path, name: str = "") -> Path:
        """Write the page where a reader may have it open already."""
        path = folder / (name or self.name)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(self.data)
        return path

    def _put(self, struct_: Struct, start: int, name: str, value: object) -> None:
        field = next(field for field in struct_.fields if field.name == name)
        values = value if isinstance(value, tuple) else (value,)
        struct.pack_into(f"<{field.format}", self.data, start + struct_.offsets[name], *values)


@contextmanager
def writer_of(path: Path) -> Iterator[None]:
    """Hold the lock that a living writer holds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.fcntl(descriptor, _F_OFD_SETLK, struct.pack("@hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        yield
    finally:
        os.close(descriptor)
