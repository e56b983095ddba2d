"""What the pages of some folders have recorded of each operator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from ..errors import PageError
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import scan
from ..pages.page import read_notes
from .repro import Recorded


def recordings(folders: Iterable[Path]) -> tuple[dict[str, Recorded], set[str]]:
    """Read all pages, live and finished.

    Returns:
        The newest recording of each operator by its full overload name, and the operators that
        have events, recorded or not. A page that cannot be read costs itself.
    """
    recorded: dict[str, Recorded] = {}
    seen: set[str] = set()
    pages = scan(folders, ArmFailures()).pages
    for found in sorted(pages, key=lambda found: found.reading.page.created_unix_ns):
        page = found.reading.page
        seen |= {key.op for key, slot in page.slots.items() if slot.events}
        with contextlib.suppress(PageError):
            notes = read_notes(found.path)
            for op, signatures in notes.signatures.items():
                sites = notes.call_sites.get(op, ())
                recorded[op] = Recorded(
                    op, page.versions, signatures[0], sites[0] if sites else None
                )
    return recorded, seen
