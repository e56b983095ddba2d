"""What a source of metrics has to offer, and how its families are made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from prometheus_client import Metric


class Collector(Protocol):
    """One source of metrics.

    A collector answers from what it has and never waits for something slow: a scrape is
    waiting for it. Having no data is not a failure: it returns no family. What it raises
    costs this scrape its own families and nothing else.
    """

    @property
    def name(self) -> str:
        """Value of the label ``collector``: lower case, words joined by ``_``."""

    def collect(self) -> Iterable[Metric]:
        """Families of this moment, in a fixed order, each at most once.

        Called by one thread at a time.
        """
