"""The file ``recordings.json``: how each operator was called first, of processes that have ended.

Beside the counts, because a page takes its notes with it when it is removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import PageError
from ..pages.model import Versions
from ..pages.notes import Argument, CallSite, Notes, call_site_of, signature_of

NAME = "recordings.json"
MAX_BYTES = 1 << 20
_MAX_ENTRY_BYTES = 16 << 10


@dataclass(frozen=True)
class Recording:
    """What is kept of one operator.

    Attributes:
        versions: of the process that recorded it.
        arguments: None: none were recorded.
        call_site: None: none was recorded.
    """

    versions: Versions
    arguments: tuple[Argument, ...] | None
    call_site: CallSite | None


def recordings_in(notes: Notes, versions: Versions) -> dict[str, Recording]:
    """Return what one page recorded first of each operator."""
    found: dict[str, Recording] = {}
    for op in {**notes.signatures, **notes.call_sites}:
        signatures, sites = notes.signatures.get(op), notes.call_sites.get(op)
        found[op] = Recording(
            versions, signatures[0] if signatures else None, sites[0] if sites else None
        )
    return found


def encode(recordings: Mapping[str, Recording]) -> bytes:
    """Return the contents of the file; what does not fit is left out, the latest first."""
    parts: list[str] = []
    size = len('{"version":1,"ops":{}}')
    for op, one in recordings.items():
        site, versions = one.call_site, one.versions
        entry = {
            "versions": [versions.torch, versions.torch_npu, versions.cann, versions.hook],
            "arguments": None if one.arguments is None else [a._asdict() for a in one.arguments],
            "site": None
            if site is None
            else {
                "site": site.place,
                "stack": site.stack,
                "signature": site.signature,
                "unix_ns": site.first_seen_unix_ns,
            },
        }
        part = f"{json.dumps(op)}:{json.dumps(entry, separators=(',', ':'))}"
        if len(part) <= _MAX_ENTRY_BYTES and size + len(part) + 1 <= MAX_BYTES:
            parts.append(part)
            size += len(part) + 1
    return f'{{"version":1,"ops":{{{",".join(parts)}}}}}'.encode()


def decode(data: bytes) -> dict[str, Recording]:
    """Read the file; entries that make no sense are left out: they are hints, not counts."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    ops = content.get("ops") if isinstance(content, dict) else None
    if not isinstance(ops, dict) or content.get("version") != 1:
        return {}
    recordings: dict[str, Recording] = {}
    for op, entry in ops.items():
        try:
            recordings[op] = _recording(entry)
        except PageError:
            continue
    return recordings


def _recording(entry: Any) -> Recording:  # noqa: ANN401 - JSON
    match entry:
        case {
            "versions": [str() as torch, str() as torch_npu, str() as cann, str() as hook],
            "arguments": list() | None as arguments,
            "site": dict() | None as site,
        }:
            pass
        case _:
            raise PageError("corrupt", f"{NAME} has an impossible entry", "remove it")
    return Recording(
        Versions(torch, torch_npu, cann, hook),
        None if arguments is None else signature_of({"arguments": arguments}),
        None if site is None else call_site_of(site, _time(site.get("unix_ns"))),
    )


def _time(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else 0
