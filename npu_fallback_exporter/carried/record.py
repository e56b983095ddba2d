"""The file ``totals.json``: counts of processes whose pages are gone (docs/page-format.md)."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ..errors import PageError
from ..pages.arm_failure import REASONS
from ..pages.layout import CAUSES, DIRECTIONS, KINDS, SIZE_BUCKETS
from ..pages.model import SlotCounters, TransferCounters
from .tally import Key, Tally

NAME = "totals.json"
MAX_BYTES = 8 << 20

# Bounds of what is written. The file is rewritten whenever a process ends.
MAX_OPS = 1024
MAX_ROWS = 8192
MAX_MERGED = 4096

_FORMAT = "npu-fallback-totals"
_VERSION = 1
_TOO_LARGE = 1 << 62
_HEX = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NPU = re.compile(r"(logical-)?[0-9]{1,3}", re.ASCII)
_MAX_OP_CHARACTERS = 1024


@dataclass(frozen=True)
class Carried:
    """The counts of processes that have ended, and which processes those are.

    Attributes:
        id: tells this file from a later one that somebody started anew.
        retired: pages and arm failures merged so far.
        merged: who they are, oldest first; the oldest are left out when there are too many.
    """

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    retired: int = 0
    merged: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally)

    def with_merged(self, names: Iterable[str], tallies: Iterable[Tally]) -> Carried:
        """Return these counts with those of further processes added; `self` stays as it is."""
        new = tuple(names)
        sum_ = replace(
            self.tally,
            rows=dict(self.tally.rows),
            first_seen_unix_ns=dict(self.tally.first_seen_unix_ns),
        )
        for tally in tallies:
            sum_.add(tally, MAX_OPS, MAX_ROWS)
        merged = (*self.merged, *new)[-MAX_MERGED:]
        return Carried(self.id, self.retired + len(new), merged, sum_)

    def merged_since(self, before: Carried | None) -> tuple[frozenset[str], bool]:
        """Return who was merged after `before`, and whether that is all of them."""
        if before is None or before.id != self.id:
            return frozenset(self.merged), self.retired == len(self.merged)
        number = max(0, self.retired - before.retired)
        new = self.merged[max(0, len(self.merged) - number) :]
        return frozenset(new), number == len(new)


def encode(carried: Carried) -> bytes:
    """Return the contents of the file."""
    tally = carried.tally
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "id": carried.id,
        "retired": carried.retired,
        "created_unix_ns": tally.created_unix_ns,
        "tracked": tally.tracked,
        "boundary_watched": tally.boundary_watched,
        "first_seen_unix_ns": tally.first_seen_unix_ns,
        "rows": [[*key, *row] for key, row in tally.rows.items()],
        "merged": carried.merged,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode(data: bytes) -> Carried:
    """Validate and decode.

    Raises:
        PageError: corrupt or version, and nothing else.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        _corrupt("is not JSON")
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        _corrupt("is something else")
    if content.get("version") != _VERSION:
        raise PageError(
            "version",
            f"{NAME} has version {content.get('version')!r}, not {_VERSION}",
            "use one release of the exporter for all exporters of a folder",
        )
    return Carried(
        id=_id(content.get("id")),
        retired=_number(content.get("retired")),
        merged=tuple(_id(name) for name in _list(content.get("merged"))),
        tally=Tally(
            rows=dict(map(_row, _list(content.get("rows")))),
            first_seen_unix_ns={
                _op(name): _number(seen)
                for name, seen in _mapping(content.get("first_seen_unix_ns")).items()
            },
            created_unix_ns=_number(content.get("created_unix_ns")),
            tracked=content.get("tracked") is True,
            boundary_watched=content.get("boundary_watched") is True,
        ),
    )


def _corrupt(what: str) -> NoReturn:
    raise PageError(
        "corrupt", f"{NAME} {what}", "remove it; what it carried stays in this exporter's memory"
    )


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        _corrupt("lacks a list")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _corrupt("lacks a mapping")
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _TOO_LARGE:
        _corrupt("has an impossible number")
    return value


def _matching(pattern: re.Pattern[str]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            _corrupt("has an impossible label")
        return value

    return check


def _one_of(values: tuple[str, ...]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in values:
            _corrupt("has an impossible label")
        return value

    return check


def _op(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_OP_CHARACTERS:
        _corrupt("has an impossible op name")
    if any("\ud800" <= character <= "\udfff" for character in value):
        _corrupt("has an op name that is not Unicode")
    return value


_id = _matching(_HEX)
_npu = _matching(_NPU)
_PROCESS_NUMBERS = 3 + 2 * len(DIRECTIONS) + len(DIRECTIONS) * SIZE_BUCKETS

# By family: how its labels are checked, and how many numbers follow.
_SHAPES: Mapping[str, tuple[tuple[Callable[[object], str], ...], int]] = {
    "slot": ((_op, _one_of(KINDS), _npu), len(SlotCounters._fields)),
    "sync": ((_op, _npu), 1),
    "transfer": ((_one_of(DIRECTIONS), _one_of(CAUSES), _npu), len(TransferCounters._fields)),
    "kind": ((_one_of(KINDS), _npu), 1),
    "process": ((), _PROCESS_NUMBERS),
    "armed": ((), 1),
    "finished": ((), 1),
    "failure": ((_one_of(REASONS),), 1),
}


def _row(value: object) -> tuple[Key, tuple[int, ...]]:
    values = _list(value)
    family = values[0] if values and isinstance(values[0], str) else ""
    if family not in _SHAPES:
        _corrupt("has a row of no known family")
    labels, numbers = _SHAPES[family]
    if len(values) != 1 + len(labels) + numbers:
        _corrupt(f"has a row of {len(values)} values in family {family}")
    key = (
        family,
        *(check(label) for check, label in zip(labels, values[1:], strict=False)),
    )
    return key, tuple(map(_number, values[1 + len(labels) :]))
