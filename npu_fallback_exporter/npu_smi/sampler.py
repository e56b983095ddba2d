"""The thread that asks npu-smi, so that no scrape ever waits for it.

A cycle is one call. The plain table is due each interval; half an interval
later one card is asked for its finer figures, in rotation, so that eight cards
take eight intervals and never more than one call is under way.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from npu_fallback_exporter.npu_smi.command import CallResult
from npu_fallback_exporter.npu_smi.figures import ChipKey, ChipUsages, IdMap, InfoTable
from npu_fallback_exporter.npu_smi.mapping import device_nodes, needs_id_map, npu_labels
from npu_fallback_exporter.npu_smi.parser import (
    Diagnosis,
    FailureReason,
    diagnose,
    parse_id_map,
    parse_info,
    parse_usages,
)

DEFAULT_INTERVAL_SECONDS = 10.0
#: A sample older than this many of its own periods is no longer shown.
STALE_AFTER_PERIODS = 3
#: While npu-smi fails, the pause doubles up to this many intervals.
_LONGEST_PAUSE_INTERVALS = 6
#: Where labels are undecided because ``-m`` failed, it is asked again after this many samples.
_MAP_AGAIN_AFTER = 30
#: A card that has no finer figures is asked again after this many rotations.
_SKIPPED_ROTATIONS = 30
#: One whose call failed is asked again after this many, so that timeouts do not add up.
_FAILED_ROTATIONS = 3

_log = logging.getLogger(__name__)


class Command(Protocol):
    """Runs npu-smi; see ``command.NpuSmiCommand``."""

    def run(self, *arguments: str) -> CallResult:
        """Call npu-smi with ``arguments`` and wait for it."""

    def cancel(self) -> None:
        """End a running call soon, and every later one at once."""


@dataclass(frozen=True)
class Snapshot:
    """What is known now. Everything stale is already left out."""

    #: The last table, or None if there was none or it is older than three intervals.
    info: InfoTable | None = None
    #: Label ``npu`` of each chip of ``info``.
    labels: Mapping[ChipKey, str] = field(default_factory=dict)
    #: Finer figures by chip; their period is one rotation over all cards.
    usages: Mapping[ChipKey, ChipUsages] = field(default_factory=dict)
    #: The last table call gave a sample that is not stale.
    up: bool = False
    #: Of the last table call, whether it succeeded or not.
    duration_seconds: float | None = None
    #: Unix time of the last table.
    last_success_seconds: float | None = None
    failures: Mapping[FailureReason, int] = field(default_factory=dict)
    #: Why there is no sample, in words; empty if there is one.
    trouble: str = ""


class NpuSmiSampler:
    """Samples npu-smi in a thread of its own.

    Args:
        command: what runs npu-smi.
        interval_seconds: from one plain table to the next.
        monotonic: clock of ages and pauses, in seconds.
        wall_clock: Unix time, in seconds.
        nodes: gives the numbers of the device nodes seen here.

    ``snapshot`` may be called from any thread; ``step`` only from one.
    """

    def __init__(
        self,
        command: Command,
        *,
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        nodes: Callable[[], frozenset[int]] = lambda: device_nodes(Path("/dev")),
    ) -> None:
        self._command = command
        self._interval = interval_seconds
        self._monotonic = monotonic
        self._wall_clock = wall_clock
        self._nodes = nodes
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        # Written by the sampling thread under the lock, read by scrapes.
        self._lock = threading.Lock()
        self._info: InfoTable | None = None
        self._labels: dict[ChipKey, str] = {}
        self._taken_at = 0.0
        self._usages: dict[ChipKey, tuple[float, ChipUsages]] = {}
        self._rotation_seconds = interval_seconds
        self._last_call_succeeded = False
        self._duration: float | None = None
        self._last_success: float | None = None
        self._failures = dict.fromkeys(FailureReason, 0)
        self._trouble = "npu-smi has not answered yet"
        # Of the sampling thread alone.
        self._failures_in_a_row = 0
        self._info_due = monotonic()
        self._usages_due: float | None = None
        self._unmapped: InfoTable | None = None
        self._id_map: IdMap | None = None
        self._mapped_keys: frozenset[ChipKey] = frozenset()
        self._samples_to_next_map = 0
        self._next_card = 0
        self._not_before: dict[int, float] = {}
        self._logged: set[str] = set()

    def start(self) -> None:
        """Start the thread; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="npu-smi", daemon=True)
            self._thread.start()

    def stop(self, timeout_seconds: float = 1.0) -> bool:
        """End a running call and the thread; True if it ended in time."""
        self._stop.set()
        self._command.cancel()
        if self._thread is None:
            return True
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def __enter__(self) -> NpuSmiSampler:
        """Start the thread."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the thread."""
        self.stop()

    def snapshot(self) -> Snapshot:
        """Return what is known now, without what is stale. Never waits for npu-smi."""
        now = self._monotonic()
        with self._lock:
            age = now - self._taken_at
            fresh = self._info is not None and age <= STALE_AFTER_PERIODS * self._interval
            oldest = now - STALE_AFTER_PERIODS * self._rotation_seconds
            return Snapshot(
                info=self._info if fresh else None,
                labels=self._labels if fresh else {},
                usages={
                    key: usages for key, (taken, usages) in self._usages.items() if taken >= oldest
                }
                if fresh
                else {},
                up=fresh and self._last_call_succeeded,
                duration_seconds=self._duration,
                last_success_seconds=self._last_success,
                failures=dict(self._failures),
                trouble="" if fresh else self._trouble or f"the last sample is {age:.0f} s old",
            )

    def step(self) -> float:
        """Run the call that is due, if one is; return the seconds until the next is due."""
        now = self._monotonic()
        if self._unmapped is not None:
            self._map(self._unmapped)
        elif now >= self._info_due:
            self._sample_info()
        elif self._usages_due is not None and now >= self._usages_due:
            self._usages_due = None
            self._sample_usages()
        if self._unmapped is not None:
            return 0.0
        due = self._info_due if self._usages_due is None else min(self._info_due, self._usages_due)
        return max(0.0, due - self._monotonic())

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            try:
                pause = self.step()
            except Exception:
                # The thread must outlive any mistake in it: the next sample may be fine.
                _log.exception("npu-smi sampling failed: report this with the lines below")
                pause = self._interval

    def _sample_info(self) -> None:
        started = self._monotonic()
        result = self._command.run("info")
        table = parse_info(result.stdout, ended=result.complete)
        failure = result.failure
        if not table.chips and failure is None:
            failure = diagnose(result.stdout + "\n" + result.stderr, result.exit_status)
        if failure is None or (table.chips and failure.reason is not FailureReason.TIMEOUT):
            self._failures_in_a_row = 0
            self._info_due = max(started + self._interval, self._monotonic())
            self._usages_due = started + self._interval / 2
            self._note_problems(table)
            with self._lock:
                self._duration = result.duration_seconds
            if self._wants_map(table):
                # Its labels are not decided before ``-m`` has been asked.
                self._unmapped = table
            else:
                self._publish(table)
            return
        self._failures_in_a_row += 1
        pause = min(2 ** (self._failures_in_a_row - 1), _LONGEST_PAUSE_INTERVALS)
        self._info_due = self._monotonic() + pause * self._interval
        self._usages_due = None
        with self._lock:
            self._duration = result.duration_seconds
            self._last_call_succeeded = False
            self._trouble = str(failure)
        self._count(failure, "info")

    def _wants_map(self, table: InfoTable) -> bool:
        if not needs_id_map(table.chips):
            return False
        if frozenset(chip.key for chip in table.chips) != self._mapped_keys:
            return True
        self._samples_to_next_map -= 1
        undecided = any(not label.isdecimal() for label in self._labels.values())
        return self._id_map is None and undecided and self._samples_to_next_map <= 0

    def _map(self, table: InfoTable) -> None:
        self._unmapped, self._samples_to_next_map = None, _MAP_AGAIN_AFTER
        result = self._command.run("info", "-m")
        id_map = parse_id_map(result.stdout, ended=result.complete)
        # Asked once per set of chips, answered or not: decided labels must not change.
        self._mapped_keys = frozenset(chip.key for chip in table.chips)
        self._id_map = id_map if id_map.rows else None
        if self._id_map is None:
            text = result.stdout + "\n" + result.stderr
            failure = result.failure or diagnose(text, result.exit_status)
            if not failure.unsupported:
                self._count(failure, "info -m")
        self._publish(table)

    def _publish(self, table: InfoTable) -> None:
        labels = npu_labels(table.chips, self._id_map, self._nodes())
        cards = {chip.key.card for chip in table.chips}
        recovered = self._last_success is not None and not self._last_call_succeeded
        with self._lock:
            self._info, self._labels = table, labels
            self._taken_at, self._last_success = self._monotonic(), self._wall_clock()
            self._rotation_seconds = self._interval * len(cards)
            self._last_call_succeeded, self._trouble = True, ""
        if recovered:
            _log.info("npu-smi answers again")
            self._logged.clear()

    def _sample_usages(self) -> None:
        """Ask the next card in turn for its finer figures."""
        info = self._info
        cards = sorted({chip.key.card for chip in info.chips}) if info is not None else []
        now = self._monotonic()
        for _ in cards:
            card = cards[self._next_card % len(cards)]
            self._next_card += 1
            if now >= self._not_before.get(card, now):
                break
        else:
            return
        result = self._command.run("info", "-t", "usages", "-i", str(card))
        parsed = parse_usages(result.stdout, ended=result.complete)
        # A text that names another card than the one asked for proves nothing.
        found = [usages for usages in parsed.chips if usages.key.card == card]
        if found and result.failure is None:
            taken = self._monotonic()
            with self._lock:
                self._usages.update({usages.key: (taken, usages) for usages in found})
            return
        failure = result.failure or diagnose(
            result.stdout + "\n" + result.stderr, result.exit_status
        )
        rotations = _SKIPPED_ROTATIONS if failure.unsupported else _FAILED_ROTATIONS
        self._not_before[card] = now + rotations * self._interval * len(cards)
        if failure.unsupported:
            self._log_once(f"card {card} has no finer figures: {failure.words}", logging.INFO)
        else:
            self._count(failure, f"info -t usages -i {card}")

    def _count(self, failure: Diagnosis, call: str) -> None:
        if self._stop.is_set():
            return
        with self._lock:
            self._failures[failure.reason] += 1
        self._log_once(f"npu-smi {call} gave no sample: {failure}{_NEXT_STEP[failure.reason]}")

    def _note_problems(self, table: InfoTable) -> None:
        for problem in table.problems:
            self._log_once(
                f"npu-smi info was read in part: {problem}; its figures are absent", logging.INFO
            )

    def _log_once(self, words: str, level: int = logging.WARNING) -> None:
        """Log a line once until npu-smi recovers from a failure."""
        if words not in self._logged and len(self._logged) < 100:
            self._logged.add(words)
            _log.log(level, "%s", words)


_NEXT_STEP = {
    FailureReason.MISSING: "; mount npu-smi and its libraries, or give --npu-smi PATH",
    FailureReason.TIMEOUT: "; see whether npu-smi answers by hand, and how many tools poll it",
    FailureReason.DRIVER: "; see whether the driver is loaded and its devices are mounted",
    FailureReason.BUSY: "; another container holds the card, see docs/npu-smi.md",
    FailureReason.UNPARSABLE: "; report the output of this call, see docs/npu-smi.md",
    FailureReason.PERMISSION: "; run the exporter as a user that may call npu-smi",
}
