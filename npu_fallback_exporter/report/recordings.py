"""What the pages of some folders have recorded of each operator, and what is left of others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from ..carried import record
from ..carried.recordings import Recording, recordings_in
from ..carried.retirement import recordings_of
from ..errors import PageError
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import FoundFolder, scan
from ..pages.page import read_notes
from .repro import Recorded


def recordings(folders: Iterable[Path]) -> tuple[dict[str, Recorded], set[str]]:
    """Read all pages, live and finished, and what is kept of those that were removed.

    Returns:
        The newest recording of each operator by its full overload name, and the operators that
        have events, recorded or not. A page that cannot be read costs itself.
    """
    recorded: dict[str, Recorded] = {}
    seen: set[str] = set()
    found = scan(folders, ArmFailures())
    for folder in found.folders:
        recorded |= _with_arguments(recordings_of(folder.path))
        seen |= _carried_ops(folder)
    for one in sorted(found.pages, key=lambda one: one.reading.page.created_unix_ns):
        page = one.reading.page
        seen |= {key.op for key, slot in page.slots.items() if slot.events}
        with contextlib.suppress(PageError):
            notes = read_notes(one.path)
            recorded |= _with_arguments(recordings_in(notes, page.versions))
    return recorded, seen


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
