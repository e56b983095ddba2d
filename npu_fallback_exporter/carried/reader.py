"""What the totals files say, from one scan to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import PageError
from ..pages.discovery import FoundFolder, SkippedFile
from . import armed, record
from .record import Carried

# Files that somebody started anew are remembered for a while, in case they come back.
_MAX_FILES = 64


@dataclass(frozen=True)
class Change:
    """A totals file that has changed.

    Attributes:
        folder: where it is.
        before: what it said before; None: it is new.
        now: what it says.
    """

    folder: Path
    before: Carried | None
    now: Carried


class CarriedReader:
    """Decodes totals files when they change."""

    def __init__(self) -> None:
        self._data: dict[Path, bytes] = {}
        # By id: one file may be reached through several folders.
        self._known: dict[str, Carried] = {}
        self.merged: frozenset[str] = frozenset()

    def read(self, folders: Iterable[FoundFolder]) -> tuple[list[Change], list[SkippedFile]]:
        """Return what changed, and the files that cannot be used; they change nothing."""
        changes: list[Change] = []
        skipped: list[SkippedFile] = []
        for folder in folders:
            data = folder.carried.get(record.NAME)
            if data is None or data == self._data.get(folder.path):
                continue
            try:
                now = record.decode(data)
                before = self._known.get(now.id)
                if before is not None and now.tally.fell_below(before.tally):
                    raise PageError(
                        "corrupt",
                        f"{record.NAME} has less than before",
                        "find out who writes to it",
                    )
            except PageError as error:
                skipped.append(SkippedFile(f"{folder.path}/{record.NAME}", 0, error))
                continue
            self._data[folder.path] = data
            self._known.pop(now.id, None)
            self._known[now.id] = now  # the newest last
            changes.append(Change(folder.path, before, now))
        for old in [*self._known][:-_MAX_FILES]:
            del self._known[old]
        if changes:
            self.merged = frozenset().union(*(one.merged for one in self._known.values()))
        return changes, skipped


def seen_armed(folders: Iterable[FoundFolder]) -> dict[str, int]:
    """How long processes were seen armed by any exporter, by digest; nanoseconds."""
    seen: dict[str, int] = {}
    for folder in folders:
        for digest, number in armed.decode(folder.carried.get(armed.NAME, b"")).items():
            seen[digest] = max(number, seen.get(digest, 0))
    return seen
