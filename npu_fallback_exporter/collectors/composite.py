"""All collectors of one scrape, each on its own risk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.samples import Sample

from ..metrics import exporter
from .base import Collector

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """The answer to one scrape.

    Attributes:
        metrics: families in the order of the collectors.
        failures: by name of the collector that failed: why, in one line.
    """

    metrics: tuple[Metric, ...]
    failures: dict[str, str] = field(default_factory=dict)

    def collect(self) -> tuple[Metric, ...]:
        """Return the families, as the encoders of prometheus_client ask for them."""
        return self.metrics


class CompositeCollector:
    """Asks every collector, and says of each whether it answered and how long it took.

    A collector that raises costs its own families; why is logged when it changes.
    """

    def __init__(
        self,
        collectors: Sequence[Collector],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._collectors = tuple(collectors)
        self._clock = clock
        self._failures: dict[str, str] = {}

    def snapshot(self) -> Snapshot:
        """Collect once. Never raises. To be called by one thread at a time."""
        metrics: list[Metric] = []
        failures: dict[str, str] = {}
        success = exporter.COLLECTOR_SUCCESS.family()
        duration = exporter.COLLECTOR_DURATION.family()
        for collector in self._collectors:
            started = self._clock()
            try:
                metrics.extend(list(collector.collect()))
            except Exception as error:
                failures[collector.name] = _one_line(error)
                self._log_change(collector.name, error)
            labels = {"collector": collector.name}
            good = collector.name not in failures
            success.samples.append(Sample(exporter.COLLECTOR_SUCCESS.name, labels, good))
            elapsed = self._clock() - started
            duration.samples.append(Sample(exporter.COLLECTOR_DURATION.name, labels, elapsed))
        self._failures = failures
        return Snapshot((*metrics, success, duration), failures)

    def _log_change(self, name: str, error: Exception) -> None:
        if self._failures.get(name) != _one_line(error):
            _log.error("collector %s failed: %s", name, _one_line(error))
            _log.debug("collector %s failed", name, exc_info=error)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
