"""Counts as rows that add up, with labels that depend on no setting of an exporter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import add, sub

from ..pages.layout import OTHER_OP
from ..pages.model import Page
from ..pages.npu_identity import NpuLabels
from ..rises import Row, flat, rise

# The family, then its labels. "process" are the numbers of rises.flat(), "armed" nanoseconds,
# "finished" processes, "failure" arm failures by reason, "kind" events over all ops.
Key = tuple[str, ...]

_OVERFLOWED = 2  # place of ops_overflowed in rises.flat()


@dataclass
class Tally:
    """Counts of some processes together.

    Attributes:
        rows: numbers that only rise, by family and labels.
        first_seen_unix_ns: of each op.
        created_unix_ns: when the oldest page was made; 0: none.
        tracked: some process watched all operators, not only fallbacks.
        boundary_watched: some process watched the driver boundary.
    """

    rows: dict[Key, Row] = field(default_factory=dict)
    first_seen_unix_ns: dict[str, int] = field(default_factory=dict)
    created_unix_ns: int = 0
    tracked: bool = False
    boundary_watched: bool = False

    def add(self, other: Tally, max_ops: int, max_rows: int) -> None:
        """Add the counts of other processes; ops that do not fit go to ``__other__``.

        Args:
            other: what to add.
            max_ops: op names to keep apart.
            max_rows: rows to have before further ones of an op go to ``__other__``.
        """
        folded: set[str] = set()
        for key, row in other.rows.items():
            place = key
            if key not in self.rows and key[0] in {"slot", "sync"} and key[1] != OTHER_OP:
                is_new = key[1] not in self.first_seen_unix_ns
                if is_new and len(self.first_seen_unix_ns) >= max_ops:
                    folded.add(key[1])
                if key[1] in folded or len(self.rows) >= max_rows:
                    place = (key[0], OTHER_OP, *key[2:])
            self._add_row(place, row)
            if place == key and key[0] in {"slot", "sync"}:
                self._note_op(key[1], other.first_seen_unix_ns.get(key[1], 0))
        if folded:
            process = [0] * len(self.rows.get(("process",), ()))
            process[_OVERFLOWED : _OVERFLOWED + 1] = [len(folded)]
            self._add_row(("process",), tuple(process))
        self.created_unix_ns = _earlier(self.created_unix_ns, other.created_unix_ns)
        self.tracked |= other.tracked
        self.boundary_watched |= other.boundary_watched

    def minus(self, *others: Tally) -> dict[Key, Row]:
        """How far these counts are above those of `others` together; never below 0.

        What `others` have of an op that was folded away here is taken off ``__other__``.
        """
        less: dict[Key, Row] = {}
        for other in others:
            for key, row in other.rows.items():
                place = key
                if key not in self.rows and key[0] in {"slot", "sync"}:
                    place = (key[0], OTHER_OP, *key[2:])
                known = less.get(place)
                less[place] = tuple(map(add, known, row)) if known else row
        risen: dict[Key, Row] = {}
        for key, row in self.rows.items():
            taken = less.get(key)
            risen[key] = tuple(max(0, now) for now in map(sub, row, taken)) if taken else row
        return risen

    def fell_below(self, before: Tally) -> bool:
        """Whether a number is lower than it was in `before`, which no exporter does."""
        return any(
            key not in self.rows or min(map(sub, self.rows[key], row)) < 0
            for key, row in before.rows.items()
        )

    def _add_row(self, key: Key, row: Row) -> None:
        known = self.rows.get(key)
        self.rows[key] = tuple(map(add, known, row)) if known else row

    def _note_op(self, op: str, seen: int) -> None:
        known = self.first_seen_unix_ns.get(op, 0)
        self.first_seen_unix_ns[op] = _earlier(known, seen)


def tally_of_page(page: Page, armed_ns: int, finished: bool) -> Tally:
    """All that one page has counted.

    Args:
        page: the page.
        armed_ns: how long its process was armed.
        finished: whether it is to count as one that has ended.
    """
    labels = NpuLabels(page.chips)
    risen = rise(None, page)
    rows: dict[Key, Row] = {}
    if page.armed.ever:
        for npu in labels.to_create(()):
            rows |= _kinds(npu)
    events: Counter[tuple[str, str]] = Counter()
    for (op, kind, index), row in risen.slots:
        npu = labels.label(index)
        rows["slot", op, kind, npu] = tuple(row)
        events[kind, npu] += row[0]
    for (kind, npu), count in events.items():
        rows = {**_kinds(npu), **rows}
        rows["kind", kind, npu] = (count,)
    for (op, index), row in risen.syncs:
        rows["sync", op, labels.label(index)] = row
    for (direction, cause, index), row in risen.transfers:
        rows["transfer", direction, cause, labels.label(index)] = tuple(row)
    rows["process",] = flat(page.counters)
    rows["armed",] = (armed_ns,)
    rows["finished",] = (int(finished),)
    return Tally(
        rows=rows,
        first_seen_unix_ns={op.name: op.first_seen_unix_ns for op in page.ops},
        created_unix_ns=page.created_unix_ns,
        tracked=page.armed.ever and page.track == "all",
        boundary_watched=page.armed.ever and page.boundary != "none",
    )


def tally_of_failures(reasons: Iterable[str]) -> Tally:
    """Arm failures, by their reasons."""
    counts: Mapping[str, int] = Counter(reasons)
    return Tally({("failure", reason): (count,) for reason, count in counts.items()})


def _kinds(npu: str) -> dict[Key, Row]:
    return {("kind", kind, npu): (0,) for kind in ("dispatcher", "explicit_kernel")}


def _earlier(known: int, other: int) -> int:
    return min(known, other) if known and other else known or other
