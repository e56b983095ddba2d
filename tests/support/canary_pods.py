"""Pods of a service as Prometheus sees them: a baseline, a candidate, and what befalls them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.recorded import Recording

SCRAPE_SECONDS = 15
#: The window that tests ask for, and the warm-up; the baseline is as old as it says.
WINDOW_SECONDS, WARMUP_SECONDS, BASELINE_SECONDS = 900, 300, 7200
OPERATORS_PER_REQUEST = 100
FMAX, LOADING = "aten::fmax.out", "aten::linalg_inv_ex.inverse"
NEW_OP = "aten::lgamma.out"

#: Counts so far, by metric and op.
Counts = defaultdict[tuple[str, str], float]

_ALWAYS_THERE = (
    "npu_operators_total",
    "npu_device_allocations_total",
    "npu_transfer_bytes_total",
    "npu_syncs_total",
    "npu_fallback_kind_events_total",
    "npu_fallback_armed_seconds_total",
    "npu_fallback_processes",
    "npu_fallback_processes_finished_total",
)


@dataclass(frozen=True)
class Behaviour:
    """What a version of the service does.

    Attributes:
        per_1000: fallbacks of each op in a thousand requests.
        refused: the same for refusals.
        host_seconds: of one fallback.
        bytes: moved for one request.
        syncs: waits for one request.
        loading: fallbacks of each op while it loads, in the first minute.
        on_device: whether the operators run on the device.
    """

    per_1000: Mapping[str, int] = field(default_factory=lambda: {FMAX: 1000})
    refused: Mapping[str, int] = field(default_factory=dict)
    host_seconds: float = 1e-3
    bytes: int = 100_000
    syncs: int = 2
    loading: Mapping[str, int] = field(default_factory=lambda: {LOADING: 30})
    on_device: bool = True


@dataclass
class Pod:
    """One pod, recorded at every scrape from its start to the end.

    Attributes:
        labels: of its target.
        behaviour: of its server.
        requests: that reach it in all, evenly, from three minutes after its start to the end.
        age: seconds before the end at which it starts.
        restarts: seconds before the end at which the whole pod starts again: counters at 0.
        worker_restarts: the same for a worker of it: the counters go on.
        thrice: seconds before the end at which NEW_OP falls back three times, and never else.
        down_from: seconds before the end from which it cannot be scraped.
        not_a_number: metric that is NaN from the middle of the window on.
        arm_failures: processes that could not be armed.
    """

    labels: Mapping[str, str]
    behaviour: Behaviour = field(default_factory=Behaviour)
    requests: int = 10_000
    age: int = 1500
    restarts: tuple[int, ...] = ()
    worker_restarts: tuple[int, ...] = ()
    thrice: tuple[int, ...] = ()
    down_from: int = -1
    not_a_number: str = ""
    arm_failures: int = 0

    def record(self, recording: Recording) -> None:
        """Live through it."""
        starts = (self.age, *self.restarts, *self.worker_restarts)
        loads = {start - later for start in starts for later in (0, 60)}
        counts, served = _new_counts(), 0
        for before_end in range(self.age, -1, -SCRAPE_SECONDS):
            if before_end in self.restarts:
                counts = _new_counts()
            if before_end in self.worker_restarts:
                counts["npu_fallback_processes_finished_total", ""] += 1
            if before_end in loads:
                self._load(counts)
            if before_end in self.thrice:
                self._fall_back(counts, NEW_OP, 3)
            wanted = self._requests_until(before_end)
            self._serve(counts, served, wanted)
            served = wanted
            counts["npu_fallback_armed_seconds_total", ""] += SCRAPE_SECONDS
            self._scrape(recording, before_end, counts)

    def _requests_until(self, before_end: int) -> int:
        serving = self.age - 180
        return max(0, round(self.requests * (serving - before_end) / serving))

    def _load(self, counts: Counts) -> None:
        """Load half of it."""
        for op, events in self.behaviour.loading.items():
            self._fall_back(counts, op, events // 2)
        counts["npu_operators_total", ""] += 100

    def _serve(self, counts: Counts, first: int, last: int) -> None:
        does, requests = self.behaviour, last - first
        for op, rate in does.per_1000.items():
            self._fall_back(counts, op, last * rate // 1000 - first * rate // 1000)
        for op, rate in does.refused.items():
            refused = last * rate // 1000 - first * rate // 1000
            counts["npu_fallback_blocked_total", op] += refused
        operators = requests * OPERATORS_PER_REQUEST
        counts["npu_operators_total", ""] += operators
        counts["npu_device_allocations_total", ""] += operators if does.on_device else 0
        counts["npu_transfer_bytes_total", ""] += requests * does.bytes
        counts["npu_syncs_total", ""] += requests * does.syncs

    def _fall_back(self, counts: Counts, op: str, events: int) -> None:
        counts["npu_fallback_kind_events_total", ""] += events
        counts["npu_fallback_events_total", op] += events
        counts["npu_fallback_host_seconds_total", op] += events * self.behaviour.host_seconds

    def _scrape(self, recording: Recording, before_end: int, counts: Counts) -> None:
        moment, up = recording.end - before_end, before_end > self.down_from
        recording.add("up", self.labels, moment, up)
        if not up:
            return
        if self.arm_failures:
            labels = {**self.labels, "reason": "no_hook"}
            recording.add("npu_fallback_arm_failures_total", labels, moment, self.arm_failures)
        for (name, op), count in counts.items():
            if count or not op:  # series of ops begin with their first event
                odd = name == self.not_a_number and before_end < WINDOW_SECONDS / 2
                labels = {**self.labels, **_own_labels(name, op)}
                recording.add(name, labels, moment, math.nan if odd else count)


def _new_counts() -> Counts:
    zero = dict.fromkeys(((name, "") for name in _ALWAYS_THERE), 0.0)
    return defaultdict(float, {**zero, ("npu_fallback_processes", ""): 1.0})


def _own_labels(name: str, op: str) -> dict[str, str]:
    where = {"kind": "dispatcher", "npu": "0"}
    if op:
        return {"op": op, **where}
    return {
        "npu_fallback_kind_events_total": where,
        "npu_transfer_bytes_total": {"direction": "d2h", "cause": "fallback", "npu": "0"},
        "npu_syncs_total": {"op": "aten::_local_scalar_dense", "npu": "0"},
    }.get(name, {})
