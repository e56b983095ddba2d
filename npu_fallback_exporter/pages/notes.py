"""The note area of a page: where operators were called from, and with what arguments.

Trusts nothing: what the writer cannot have written is a corrupt page. Texts come back without
control characters, so that they can be printed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import layout, tables
from .checks import check_numbers, corrupt, unicode
from .header import decode_header

_AT = layout.PAGE.offsets
_HEADER = struct.Struct(layout.NOTE_HEADER.format)
_TOTALS = struct.Struct("<QQ")  # note_bytes, notes_dropped
_MAX_LINE = 1 << 31


class Place(NamedTuple):
    """A line of Python code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True)
class CallSite:
    """A place from which an operator fell back.

    Attributes:
        place: the innermost frame that is neither PyTorch's nor this package's; ``None`` where
            the operator was called by a thread without Python code, such as one of autograd's.
        stack: lines around it, innermost first; bounded.
        first_seen_unix_ns: when it was seen first.
        signature: index into the signatures of the operator; ``None`` when none was kept.
    """

    place: Place | None
    stack: tuple[Place, ...]
    first_seen_unix_ns: int
    signature: int | None = None

    def __str__(self) -> str:
        return "a thread without Python code" if self.place is None else str(self.place)


class Argument(NamedTuple):
    """One argument of an operator; ``value`` is JSON as argument_text.h describes it."""

    name: str
    keyword: bool
    value: Any


@dataclass(frozen=True)
class Notes:
    """The notes of one page, by full overload name, in the order in which they were made.

    Attributes:
        dropped: notes that found no room.
    """

    call_sites: Mapping[str, tuple[CallSite, ...]] = field(default_factory=dict)
    signatures: Mapping[str, tuple[tuple[Argument, ...], ...]] = field(default_factory=dict)
    dropped: int = 0


def decode_notes(read: Callable[[int, int], bytes], size: int) -> Notes:
    """Decode and validate the note area.

    Args:
        read: reads (offset, size) and returns exactly that many bytes.
        size: bytes of the file.

    Raises:
        PageError: empty, truncated, magic, version or corrupt, and nothing else unless `read`
            raises it.
    """
    decode_header(read(0, min(size, layout.HEADER.size)), size)
    used, dropped = _TOTALS.unpack(read(layout.HEADER.offsets["note_bytes"], _TOTALS.size))
    if used > layout.NOTE_BYTES:
        corrupt(f"has {used} bytes of notes")
    check_numbers((dropped,), "number of dropped notes")
    area = read(_AT["notes"], used)
    # Read after the notes, whose operators have their rows before them.
    ops = tables.decode_ops(read(_AT["ops"], layout.MAX_OPS * layout.OP_ROW.size))
    call_sites: dict[str, tuple[CallSite, ...]] = {}
    signatures: dict[str, tuple[tuple[Argument, ...], ...]] = {}
    for note_type, op_row, unix_ns, text in _records(area):
        op = ops[op_row] if op_row < len(ops) else None
        if op is None:
            corrupt(f"has a note on op row {op_row}, which has no name")
        content = _json(text)
        if note_type == layout.NOTE_CALL_SITE:
            call_sites[op.name] = (*call_sites.get(op.name, ()), call_site_of(content, unix_ns))
        elif note_type == layout.NOTE_ARGUMENTS:
            signatures[op.name] = (*signatures.get(op.name, ()), signature_of(content))
    return Notes(call_sites, signatures, dropped)


def _records(area: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield type, op row, time and text of each note."""
    start = 0
    while start < len(area):
        if start + _HEADER.size > len(area):
            corrupt(f"has a note that is cut at byte {start}")
        record_bytes, note_type, op_row, unix_ns, text_bytes, *_ = _HEADER.unpack_from(area, start)
        fits = _HEADER.size <= record_bytes <= len(area) - start and record_bytes % 8 == 0
        if not fits or text_bytes > record_bytes - _HEADER.size:
            corrupt(f"has a note of {record_bytes} bytes with {text_bytes} of text")
        check_numbers((unix_ns,), "time of a note")
        text_at = start + _HEADER.size
        yield note_type, op_row, unix_ns, area[text_at : text_at + text_bytes]
        start += record_bytes


def _json(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(unicode(text))
    except (ValueError, RecursionError):
        corrupt("has a note that is not JSON")
    if not isinstance(content, dict):
        corrupt("has a note that is not a JSON object")
    return content


def call_site_of(content: dict[str, Any], unix_ns: int) -> CallSite:
    """Validate the JSON of a call site. Raises PageError."""
    place, stack, signature = content.get("site"), content.get("stack"), content.get("signature")
    if not isinstance(stack, list):
        corrupt("has a call site without a stack")
    if signature is not None and (
        type(signature) is not int or not 0 <= signature < layout.MAX_OPS
    ):
        corrupt("has a call site with an impossible signature")
    return CallSite(
        None if place is None else _place(place),
        tuple(_place(one) for one in stack),
        unix_ns,
        signature,
    )


def _place(value: object) -> Place:
    match value:
        case [str() as file, int() as line, str() as function] if 0 <= line < _MAX_LINE:
            pass
        case _:
            corrupt("has a call site that is none")
    return Place(printable(file), int(line), printable(function))


def signature_of(content: dict[str, Any]) -> tuple[Argument, ...]:
    """Validate the JSON of an argument signature. Raises PageError."""
    arguments = content.get("arguments")
    if not isinstance(arguments, list):
        corrupt("has a signature without arguments")
    return tuple(_argument(one) for one in arguments)


def _argument(value: object) -> Argument:
    match value:
        case {"name": str() as name, "value": content, **rest}:
            pass
        case _:
            corrupt("has an argument without a name")
    return Argument(printable(name), rest.get("keyword") is True, content)


def printable(text: str) -> str:
    """Return ``text`` with what would move a cursor, or cannot be encoded, escaped."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )
