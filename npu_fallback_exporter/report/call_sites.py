"""How operators were called first, for an exporter that is asked again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ..pages.arm_failure import ArmFailures
from ..pages.discovery import scan
from .model import Call
from .recordings import calls

_LOOK_AGAIN_SECONDS = 30.0


class CallSites:
    """Remembers how operators were called first, and looks again when there is a new one.

    Args:
        folders: gives the pages folders of the moment.
        monotonic: seconds.
    """

    def __init__(
        self,
        folders: Callable[[], Iterable[Path]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folders = folders
        self._monotonic = monotonic
        self._known: dict[str, Call] = {}
        self._seen: set[str] = set()
        self._looked: float | None = None

    def of(self, ops: Iterable[str]) -> dict[str, Call]:
        """Return what is known of these ops."""
        wanted = set(ops)
        now = self._monotonic()
        late = self._looked is None or now - self._looked >= _LOOK_AGAIN_SECONDS
        if wanted - self._seen or (late and wanted - self._known.keys()):
            self._looked = now
            self._seen |= wanted
            self._known = calls(scan(self._folders(), ArmFailures()))
        return self._known
