"""Comparing two states of one process, in turns, so that drift of the machine hits both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyperf


@dataclass(frozen=True)
class Pair:
    """Seconds per call in both states, one value of each per round."""

    name: str
    bare: list[float]
    other: list[float]

    @property
    def added(self) -> float:
        """Median over the rounds of what the other state adds, in seconds per call."""
        return statistics.median(b - a for a, b in zip(self.bare, self.other, strict=True))

    @property
    def spread(self) -> tuple[float, float]:
        """First and third quartile of what it adds."""
        added = [b - a for a, b in zip(self.bare, self.other, strict=True)]
        low, _, high = statistics.quantiles(added, n=4)
        return low, high

    def row(self) -> str:
        """Return one row of a Markdown table, in microseconds."""
        bare, other = statistics.median(self.bare), statistics.median(self.other)
        low, high = self.spread
        return (
            f"| {self.name} | {bare * 1e6:.3f} | {other * 1e6:.3f} | {self.added * 1e6:+.3f} "
            f"({low * 1e6:+.3f} to {high * 1e6:+.3f}) | {other / bare:.3f} |"
        )


HEADER = """\
| call | bare, µs of CPU | armed, µs of CPU | added, µs (quartiles) | ratio |
|---|---|---|---|---|"""


def compare(
    name: str,
    call: Callable[[], object],
    enter_bare: Callable[[], object],
    enter_other: Callable[[], object],
    *,
    rounds: int = 60,
    calls: int = 2000,
) -> Pair:
    """Time ``call`` in both states in turns, the first state alternating.

    What is timed is the CPU time of the calling thread: other work on the machine, which would
    show in wall time, is left out, and a call that hands work to another thread is still whole
    as far as its caller is concerned.

    Args:
        name: what is called.
        call: what is timed.
        enter_bare: brings the process into the first state.
        enter_other: brings it into the second.
        rounds: pairs of measurements.
        calls: calls per measurement.
    """

    def seconds(enter: Callable[[], object]) -> float:
        enter()
        for _ in range(calls // 10):
            call()
        begin = time.thread_time()
        for _ in range(calls):
            call()
        return (time.thread_time() - begin) / calls

    bare: list[float] = []
    other: list[float] = []
    for index in range(rounds):
        if index % 2:
            other.append(seconds(enter_other))
            bare.append(seconds(enter_bare))
        else:
            bare.append(seconds(enter_bare))
            other.append(seconds(enter_other))
    return Pair(name, bare, other)


def machine() -> str:
    """Return one line that names the machine and the versions."""
    run = pyperf.Run([1.0], collect_metadata=True)
    data = run.get_metadata()
    keys = ("cpu_model_name", "cpu_count", "platform", "python_version", "load_avg_1min")
    return ", ".join(f"{key}: {data[key]}" for key in keys if key in data)
