"""Moments in a ring, and what happened between them."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeVar

#: Operator and kind.
OpKey = tuple[str, str]
#: One value for each point; None: not known then.
Line = tuple[float | None, ...]
_Name = TypeVar("_Name", OpKey, str)

#: Moments kept: 90 spans of ten seconds are 15 minutes.
MOMENTS = 91
#: Of these, the newest are recent: five minutes, as in the rates of the alerts.
RECENT_MOMENTS = 31
# Each moment has 16 bytes per op and 4 per NPU, so that all of them stay below 256 KiB.
MOST_OPS = 128
MOST_NPUS = 64


@dataclass(frozen=True)
class Moment:
    """Counters and utilization at one moment.

    Attributes:
        unix: when, in seconds.
        monotonic: the same on a clock that nobody sets.
        armed_seconds, operators: counters.
        events, host_seconds: counters of each op.
        npu: AI core utilization by label, 0 to 1.
        host_cpu, container_cpu: utilization, 0 to 1; None: not known.
    """

    unix: float
    monotonic: float
    armed_seconds: float
    operators: int
    events: Mapping[OpKey, int]
    host_seconds: Mapping[OpKey, float]
    npu: Mapping[str, float] = field(default_factory=dict)
    host_cpu: float | None = None
    container_cpu: float | None = None


@dataclass(frozen=True)
class OpHistory:
    """What an op did.

    Attributes:
        events, host_seconds: recently.
        events_per_second: at each point.
    """

    op: str
    kind: str
    events: int
    host_seconds: float
    events_per_second: Line = ()


@dataclass(frozen=True)
class History:
    """Rates of the last minutes, oldest first. A point stands at the end of its span.

    Attributes:
        unix: times of the points, in seconds.
        seconds: how long recently is: five minutes, or less where there is less.
        armed_seconds, operators: how far these counters rose recently.
        npu: AI core utilization by label; host_cpu, container_cpu: of the CPUs; 0 to 1.
        events_per_second: fallbacks of all ops.
        host_share: host seconds of fallbacks per armed second.
        ops: those that had any events, the most expensive of recently first.
    """

    unix: tuple[float, ...] = ()
    seconds: float = 0.0
    armed_seconds: float = 0.0
    operators: int = 0
    npu: Mapping[str, Line] = field(default_factory=dict)
    host_cpu: Line = ()
    container_cpu: Line = ()
    events_per_second: Line = ()
    host_share: Line = ()
    ops: tuple[OpHistory, ...] = ()

    @property
    def events(self) -> int:
        """Of all ops, recently."""
        return sum(op.events for op in self.ops)

    @property
    def host_seconds(self) -> float:
        """Of all ops, recently."""
        return sum(op.host_seconds for op in self.ops)


class _Kept(NamedTuple):
    """A moment as numbers in the order of names that the ring keeps; missing ones are 0."""

    unix: float
    monotonic: float
    armed_seconds: float
    operators: int
    all_events: int
    all_host_seconds: float
    events: array[int]
    host_seconds: array[float]
    npu: array[float]
    host_cpu: float | None
    container_cpu: float | None


class Ring:
    """The newest moments. Not safe for use by several threads at once."""

    def __init__(self, moments: int = MOMENTS) -> None:
        self._kept: deque[_Kept] = deque(maxlen=moments)
        self._ops: dict[OpKey, int] = {}  # first come: a name keeps its place
        self._npus: dict[str, int] = {}

    def add(self, moment: Moment) -> None:
        """Take a moment in; one that is not later than the newest is left out."""
        if self._kept and moment.monotonic <= self._kept[-1].monotonic:
            return
        _learn(self._ops, moment.events, MOST_OPS)
        _learn(self._npus, moment.npu, MOST_NPUS)
        self._kept.append(
            _Kept(
                moment.unix,
                moment.monotonic,
                moment.armed_seconds,
                moment.operators,
                sum(moment.events.values()),
                sum(moment.host_seconds.values()),
                array("Q", (moment.events.get(key, 0) for key in self._ops)),
                array("d", (moment.host_seconds.get(key, 0.0) for key in self._ops)),
                array("f", (moment.npu.get(name, math.nan) for name in self._npus)),
                moment.host_cpu,
                moment.container_cpu,
            )
        )

    def history(self) -> History:
        """Return what happened between the moments; empty with fewer than two of them."""
        kept = tuple(self._kept)
        if len(kept) < 2:
            return History()
        points, last = kept[1:], kept[-1]
        recent = kept[-RECENT_MOMENTS:][0]
        spans = [after.monotonic - before.monotonic for before, after in pairwise(kept)]
        return History(
            unix=tuple(point.unix for point in points),
            seconds=last.monotonic - recent.monotonic,
            armed_seconds=last.armed_seconds - recent.armed_seconds,
            operators=last.operators - recent.operators,
            npu={
                name: tuple(_known(point.npu, index) for point in points)
                for name, index in self._npus.items()
            },
            host_cpu=tuple(point.host_cpu for point in points),
            container_cpu=tuple(point.container_cpu for point in points),
            events_per_second=_rates((one.all_events for one in kept), spans),
            host_share=_rates(
                (one.all_host_seconds for one in kept),
                [after.armed_seconds - before.armed_seconds for before, after in pairwise(kept)],
            ),
            ops=self._op_histories(kept, spans),
        )

    def _op_histories(self, kept: Sequence[_Kept], spans: Sequence[float]) -> tuple[OpHistory, ...]:
        first, recent, last = kept[0], kept[-RECENT_MOMENTS:][0], kept[-1]
        found = [
            OpHistory(
                *key,
                int(_at(last.events, index) - _at(recent.events, index)),
                _at(last.host_seconds, index) - _at(recent.host_seconds, index),
                _rates((_at(one.events, index) for one in kept), spans),
            )
            for key, index in self._ops.items()
            if _at(last.events, index) > _at(first.events, index)
        ]
        return tuple(sorted(found, key=lambda op: (-op.host_seconds, -op.events, op.op)))


def _learn(places: dict[_Name, int], names: Iterable[_Name], most: int) -> None:
    for name in names:
        if name not in places and len(places) < most:
            places[name] = len(places)


def _at(numbers: Sequence[float], index: int) -> float:
    # A moment from before the name was known had nothing of it.
    return numbers[index] if index < len(numbers) else 0


def _known(numbers: Sequence[float], index: int) -> float | None:
    value = numbers[index] if index < len(numbers) else math.nan
    return None if math.isnan(value) else value


def _rates(values: Iterable[float], spans: Sequence[float]) -> Line:
    rises = (after - before for before, after in pairwise(values))
    return tuple(rise / span if span > 0 else None for rise, span in zip(rises, spans, strict=True))
