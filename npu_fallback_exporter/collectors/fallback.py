"""What the hooks in the server processes count."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from prometheus_client import Metric

from ..aggregator import Aggregator
from ..carried.retirement import Retirement
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import scan
from ..pages.model import Page
from ..totals import Totals
from .hook_families import HookFamilies

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class FallbackCollector:
    """Reads all pages at every scrape, and retires those of processes that have ended.

    Args:
        folders: gives the pages folders of the moment, so that one that appears later is seen.
        aggregator: keeps the totals.
        created_lines: also give the time since when each counter counts.
        monotonic_ns: this host's CLOCK_MONOTONIC.
    """

    name = "fallback"

    def __init__(
        self,
        folders: Callable[[], Iterable[Path]],
        aggregator: Aggregator,
        created_lines: bool = False,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._folders = folders
        self._aggregator = aggregator
        self._created_lines = created_lines
        self._monotonic_ns = monotonic_ns
        self._arm_failures = ArmFailures()
        self._retirement = Retirement()
        self._lock = threading.Lock()
        self._looked_ns = -1
        #: Pages of the processes that lived at the last collection.
        self.live_pages: tuple[Page, ...] = ()

    def collect(self) -> Iterable[Metric]:
        """Families of all pages; a file that cannot be read is logged once."""
        with self._lock:
            self._look()
            return HookFamilies(self._aggregator.totals, self._created_lines).build()

    def look_unless_seen_within(self, seconds: float) -> None:
        """Bring everything up to date, unless that was done so recently. Safe beside collect()."""
        with self._lock:
            self._look_unless_seen_within(seconds)

    def read(self, read: Callable[[Totals], _Result], within: float) -> tuple[float, _Result]:
        """Return what `read` makes of the totals, and how old they are in seconds.

        Args:
            read: must be quick: a scrape may wait for it. It must not keep the totals.
            within: totals up to so many seconds old will do; else the pages are looked at.
        """
        with self._lock:
            self._look_unless_seen_within(within)
            age_ns = self._monotonic_ns() - self._looked_ns
            return age_ns * 1e-9, read(self._aggregator.totals)

    def _look_unless_seen_within(self, seconds: float) -> None:
        since_ns = self._monotonic_ns() - self._looked_ns
        if self._looked_ns < 0 or since_ns >= seconds * 1e9:
            self._look()

    def _look(self) -> None:
        now_ns = self._looked_ns = self._monotonic_ns()
        found = scan(self._folders(), self._arm_failures)
        readings = [page.reading for page in found.pages]
        self.live_pages = tuple(reading.page for reading in readings if reading.live)
        for skipped in self._aggregator.observe(found, now_ns):
            _log.warning("skipped %s: %s", skipped.path, skipped.error)
        self._retirement.run(found, self._aggregator.armed_ns, now_ns)
