"""What the pages of some folders have recorded of each operator, and what is left of others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..carried import record
from ..carried.recordings import Recording, recordings_in
from ..carried.retirement import recordings_of
from ..errors import PageError
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import FoundFolder, Scan, scan
from ..pages.page import read_notes
from .argument_words import in_words
from .model import Call
from .repro import Recorded


def recordings(folders: Iterable[Path]) -> tuple[dict[str, Recorded], set[str]]:
    """Read all pages, live and finished, and what is kept of those that were removed.

    Returns:
        The newest recording of each operator by its full overload name, and the operators that
        have events, recorded or not. A page that cannot be read costs itself.
    """
    seen: set[str] = set()
    found = scan(folders, ArmFailures())
    recorded: dict[str, Recorded] = {}
    for recordings in _oldest_first(found):
        recorded |= _with_arguments(recordings)
    for folder in found.folders:
        seen |= _carried_ops(folder)
    for one in found.pages:
        seen |= {key.op for key, slot in one.reading.page.slots.items() if slot.events}
    return recorded, seen


def calls(found: Scan) -> dict[str, Call]:
    """Return, in words, how each operator was called first in the newest process that knows it."""
    newest: dict[str, Call] = {}
    for recordings in _oldest_first(found):
        newest |= {op: _call(one) for op, one in recordings.items()}
    return newest


def _oldest_first(found: Scan) -> Iterator[dict[str, Recording]]:
    """Yield what each page recorded, after what is kept of those that were removed."""
    for folder in found.folders:
        yield recordings_of(folder.path)
    for one in sorted(found.pages, key=lambda one: one.reading.page.created_unix_ns):
        with contextlib.suppress(PageError):
            yield recordings_in(read_notes(one.path), one.reading.page.versions)


def _call(one: Recording) -> Call:
    site = "" if one.call_site is None else str(one.call_site)
    return Call(site, "" if one.arguments is None else in_words(one.arguments))


def _with_arguments(found: dict[str, Recording]) -> dict[str, Recorded]:
    return {
        op: Recorded(op, one.versions, one.arguments, one.call_site)
        for op, one in found.items()
        if one.arguments is not None
    }


def _carried_ops(folder: FoundFolder) -> set[str]:
    data = folder.carried.get(record.NAME)
    with contextlib.suppress(PageError):
        rows = record.decode(data).tally.rows if data is not None else {}
        return {key[1] for key, row in rows.items() if key[0] == "slot" and row[0]}
    return set()
