"""An exporter without its web side, for tests of what it counts."""

from __future__ import annotations

from pathlib import Path

from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.collectors.fallback import FallbackCollector
from npu_fallback_exporter.totals import Totals

from .page_factory import SECOND_NS

BOOT_ID = "11111111-2222-3333-4444-555555555555"


class InProcessExporter:
    """Looks at folders when it is told to.

    Attributes:
        second: of the monotonic clock.
        aggregator: what it counts with.
        totals: of the last look.
    """

    def __init__(self, *folders: Path, max_ops: int = 100) -> None:
        self.second = 1000.0
        self.aggregator = Aggregator(max_ops, boot_id=BOOT_ID)
        self.totals: Totals = self.aggregator.totals
        self._collector = FallbackCollector(
            lambda: folders, self.aggregator, monotonic_ns=lambda: int(self.second * SECOND_NS)
        )

    def look(self) -> Totals:
        """Scrape once."""
        list(self._collector.collect())
        return self.totals

    def series(self) -> int:
        """Scrape once; how many samples there are."""
        return sum(len(family.samples) for family in self._collector.collect())

    def events(self) -> dict[str, int]:
        """Scrape once; events by op."""
        events: dict[str, int] = {}
        for (op, _, _), slot in self.look().slots.items():
            events[op] = events.get(op, 0) + slot.events
        return events


def pages_in(folder: Path) -> list[str]:
    """Names of the pages and arm failures in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.suffix in {".page", ".armfail"})
