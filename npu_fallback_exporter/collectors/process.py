"""The exporter's own process."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric, ProcessCollector


class OwnProcessCollector:
    """The ``process_*`` families of prometheus_client."""

    name = "process"

    def __init__(self) -> None:
        self._inner = ProcessCollector(registry=None)

    def collect(self) -> Iterable[Metric]:
        """CPU, memory, file descriptors and start time of this process."""
        return self._inner.collect()
