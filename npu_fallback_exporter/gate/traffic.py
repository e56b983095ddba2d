"""What one side did in the window: the rises of its counters between scrapes, warm-up left out.

The rises are taken between the scrapes themselves, not from ``increase()``, which extrapolates,
and which says 0 for a series that is first seen at 3 and stays there. An exporter that was
scraped before and did not have the series had 0 of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..metrics import hook
from . import readings
from .readings import Counter, Scrape
from .statistics import Sums

#: What falls when an exporter, or the pod around it, starts again.
_NEVER_FALL = (
    readings.OPERATORS,
    readings.EVENTS,
    readings.ARMED_SECONDS,
    readings.PROCESSES_FINISHED,
)


@dataclass(frozen=True)
class Timed:
    """One scrape of one exporter at a Unix time in seconds."""

    time: float
    values: Scrape


@dataclass(frozen=True)
class Slice:
    """What one exporter's counters rose by between two scrapes."""

    rises: Scrape

    def of(self, counter: Counter) -> float:
        """Rise of one counter; 0 if it was not there."""
        return self.rises.get(counter, 0.0)


@dataclass(frozen=True)
class Window:
    """Which scrapes count.

    Attributes:
        start: Unix time; older scrapes tell of starts and of what is known.
        warmup: seconds after the start of a process, or of an exporter, that do not count.
        ready: Unix time at which all that ran had warmed up, as the user knows.
    """

    start: float = -math.inf
    warmup: float = 0.0
    ready: float = -math.inf

    def warm_from(self, started: float) -> float:
        """When what started at a time has warmed up."""
        return started + self.warmup if self.warmup and started > self.ready else -math.inf


@dataclass
class Side:
    """Baseline or candidate.

    Attributes:
        instances: exporters with data.
        slices: of all instances, those in the window and outside warm-up.
        left_out: slices in the window that were warm-up or had a restart in them.
        history: what all counters rose by since they began, warm-up included.
        not_numbers: metrics with a value that is not a finite number.
        newest: time of the newest scrape.
        down: exporters that Prometheus could not reach at the end.
    """

    instances: int = 0
    slices: list[Slice] = field(default_factory=list)
    left_out: int = 0
    history: dict[Counter, float] = field(default_factory=dict)
    not_numbers: set[str] = field(default_factory=set)
    newest: float = -math.inf
    down: tuple[str, ...] = ()

    def total(self, counter: Counter) -> float:
        """Rise of one counter over all slices."""
        return sum(part.of(counter) for part in self.slices)

    def sums(self, counter: Counter, less: Iterable[Counter] = ()) -> Sums:
        """Rise of a counter, less what others rose by, with the operators run meanwhile."""
        without = tuple(less)
        parts = [
            (
                part.of(counter) - sum(part.of(other) for other in without),
                part.of(readings.OPERATORS),
            )
            for part in self.slices
        ]
        return Sums(sum(value for value, _ in parts), sum(size for _, size in parts), parts)

    def known(self, name: str) -> set[str]:
        """Ops (or reasons) of a metric that this side has ever counted."""
        return {key.of for key, value in self.history.items() if key.name == name and value > 0}

    def seen(self, name: str) -> set[str]:
        """Ops (or reasons) of a metric that rose in the window."""
        return {key.of for part in self.slices for key in part.rises if key.name == name}


def side_of(
    exporters: Iterable[Sequence[Timed]],
    window: Window,
    down: tuple[str, ...] = (),
) -> Side:
    """Build a side from the scrapes of its exporters, each oldest first."""
    side = Side(down=down)
    for scrapes in exporters:
        armed = [scrape for scrape in scrapes if readings.ARMED_SECONDS in scrape.values]
        if armed:
            _add(side, armed, window)
        else:
            _remember(side, _arm_failures(scrapes[-1].values))
    return side


def _add(side: Side, scrapes: Sequence[Timed], window: Window) -> None:
    side.instances += 1
    side.newest = max(side.newest, scrapes[-1].time)
    _remember(side, scrapes[0].values)
    # An exporter first seen now may have started just before.
    warm_from = window.warm_from(scrapes[0].time)
    for before, after in pairwise(scrapes):
        reset = _fell(before.values, after.values)
        rises = _rises({} if reset else before.values, after.values)
        _remember(side, rises)
        if reset or _starts(after.values) > _starts(before.values):
            warm_from = max(warm_from, window.warm_from(after.time))
        if before.time < window.start:
            continue
        if reset or before.time < warm_from:
            side.left_out += 1
        else:
            side.slices.append(Slice(rises))


def _arm_failures(values: Scrape) -> Scrape:
    return {key: value for key, value in values.items() if key.name == hook.ARM_FAILURES.name}


def _remember(side: Side, rises: Scrape) -> None:
    for key, value in rises.items():
        if math.isfinite(value):
            side.history[key] = side.history.get(key, 0.0) + value
        else:
            side.not_numbers.add(key.name)


def _fell(before: Scrape, after: Scrape) -> bool:
    return any(after.get(key, 0.0) < before.get(key, 0.0) for key in _NEVER_FALL)


def _rises(before: Scrape, after: Scrape) -> dict[Counter, float]:
    # Not a number stays one; what was absent had counted nothing.
    differences = ((key, value - before.get(key, 0.0)) for key, value in after.items())
    return {key: rise for key, rise in differences if rise > 0 or not math.isfinite(rise)}


def _starts(scrape: Scrape) -> float:
    """How many processes have ever started."""
    return sum(scrape.get(key, 0.0) for key in (readings.PROCESSES, readings.PROCESSES_FINISHED))
