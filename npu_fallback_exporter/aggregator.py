"""Pages over time to totals that never go down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .carried.reader import CarriedReader, Change, seen_armed
from .carried.tally import Key, Tally, tally_of_failures, tally_of_page
from .errors import PageError
from .op_labels import OpLabels
from .pages.discovery import FoundFolder, FoundPage, Scan, SkippedFile
from .pages.model import Page, SlotCounters
from .pages.npu_identity import NpuLabels
from .rises import Rise, Row, rise
from .totals import Hook, LiveState, Mode, Totals

FOLDED_NPU = "all"
DEFAULT_MAX_OPS = 100

# Pages that went away without being merged may come back; more of them than this are forgotten.
_MAX_VANISHED = 4096

# Infos carry text that the pages bring; more of them than this say nothing to anybody.
_MAX_INFOS = 64


class _Process:
    """What the totals hold of one writer."""

    def __init__(self, page: Page) -> None:
        # Decided once: a label never changes.
        self.npu_labels = NpuLabels(page.chips)
        self.page: Page | None = None
        self.path = ""
        self.armed_ns = 0
        self.armed_before_ns = 0  # as an exporter has seen it, perhaps this one before it ended
        self.finished = False


class Aggregator:
    """Adds to the totals what each page, and each totals file, rose since it was read before.

    A page that vanished or cannot be read any more keeps what it added, for the lifetime of the
    aggregator. When a totals file takes over a page, what is added is what that file rose by, less
    what the page had added already. Not safe for use by several threads at once.

    Args:
        max_ops: most op names with a label of their own, over all processes.
        fold_npu: give the per-op families the npu ``all``.
        boot_id: of this host, so that clocks of pages of another boot are not taken for its own;
            empty: not known.
    """

    def __init__(
        self, max_ops: int = DEFAULT_MAX_OPS, fold_npu: bool = False, boot_id: str = ""
    ) -> None:
        self.totals = Totals()
        self._op_labels = OpLabels(max_ops)
        self._fold_npu = fold_npu
        self._boot_id = boot_id
        self._carried = CarriedReader()
        self._processes: dict[str, _Process] = {}  # by the digest of the identity
        self._failures: dict[str, tuple[Path, str]] = {}  # by digest: folder and reason
        self._live_pages: list[Page] = []
        self._skipped_before: set[tuple[str, int]] = set()

    @property
    def live_pages(self) -> tuple[Page, ...]:
        """Pages whose writers lived at the last scan."""
        return tuple(self._live_pages)

    def observe(self, scan: Scan, now_ns: int) -> tuple[SkippedFile, ...]:
        """Bring the totals up to date.

        Args:
            scan: what the folders hold now.
            now_ns: CLOCK_MONOTONIC of this host at the scan.

        Returns:
            Files skipped for the first time.
        """
        self.totals.live = LiveState()
        self._live_pages = []
        changes, unusable = self._carried.read(scan.folders)
        skipped = [*scan.skipped, *unusable]
        taken_over = [(change.now.tally, self._take_over(change, scan)) for change in changes]
        armed_ns = seen_armed(scan.folders)
        rises: list[tuple[_Process, FoundPage, Rise]] = []
        for found in _one_of_each(scan.pages):
            if found.digest in self._carried.merged:
                continue  # its counts are in a totals file; it is about to be removed
            page = found.reading.page
            process = self._processes.get(found.digest) or _Process(page)
            process.armed_before_ns = armed_ns.get(found.digest, 0)
            try:
                rises.append((process, found, rise(process.page, page)))
            except PageError as error:
                skipped.append(SkippedFile(found.path, 0, error))
        self._label_new_ops(rises, (tally for tally, _ in taken_over))
        for tally, rows in taken_over:
            self._add_carried(tally, rows)
        for process, found, risen in rises:
            self._processes[found.digest] = process
            self._add(process, found, risen, now_ns)
        for folder in scan.folders:
            self._count_failures(folder)
        for digest in [*self._failures][:-_MAX_VANISHED]:
            del self._failures[digest]
        self._finish_vanished({found.path for found in scan.pages}, skipped)
        return self._note_skipped(skipped)

    @property
    def armed_ns(self) -> dict[str, int]:
        """How long each process with a page was seen armed, by its digest."""
        return {digest: process.armed_ns for digest, process in self._processes.items()}

    def _take_over(self, change: Change, scan: Scan) -> dict[Key, Row]:
        """Return what a totals file rose by, less what its pages had added here already."""
        names, complete = change.now.merged_since(change.before)
        present = {found.digest for found in scan.pages}
        for folder in scan.folders:
            present |= {failure.digest for failure in folder.failures}
        gone = set(names)
        if not complete:  # too many were merged since to be named: whoever is gone was among them
            gone |= {
                digest
                for digest, process in self._processes.items()
                if digest not in present and Path(process.path).parent == change.folder
            }
            gone |= {
                digest
                for digest, (folder, _) in self._failures.items()
                if digest not in present and folder == change.folder
            }
        known: list[Tally] = [change.before.tally] if change.before else []
        for digest in gone:
            process = self._processes.pop(digest, None)
            if process is not None and process.page is not None:
                known.append(tally_of_page(process.page, process.armed_ns, process.finished))
            failure = self._failures.pop(digest, None)
            if failure is not None:
                known.append(tally_of_failures([failure[1]]))
        return change.now.tally.minus(*known)

    def _count_failures(self, folder: FoundFolder) -> None:
        for failure in folder.failures:
            if failure.digest not in self._failures and failure.digest not in self._carried.merged:
                self._failures[failure.digest] = (folder.path, failure.reason)
                self.totals.arm_failures[failure.reason] += 1

    def _label_new_ops(
        self, rises: Iterable[tuple[_Process, FoundPage, Rise]], tallies: Iterable[Tally]
    ) -> None:
        first_seen: dict[str, int] = {}

        def note(name: str, seen: int) -> None:
            first_seen[name] = min(seen, first_seen.get(name, seen))

        for tally in tallies:
            for name, seen in tally.first_seen_unix_ns.items():
                if name not in self._op_labels:
                    note(name, seen)
        for _, found, risen in rises:
            names = {key.op for key, _ in risen.slots} | {key.op for key, _ in risen.syncs}
            new = {name for name in names if name not in self._op_labels}
            for op in found.reading.page.ops if new else ():
                if op.name in new:
                    note(op.name, op.first_seen_unix_ns)
        folded_before = self._op_labels.folded
        self._op_labels.add((seen, name) for name, seen in first_seen.items())
        self.totals.ops_overflowed += self._op_labels.folded - folded_before
        for name, seen in first_seen.items():
            if self._op_labels[name] == name:
                self.totals.first_seen_unix_ns[name] = seen

    def _add(self, process: _Process, found: FoundPage, risen: Rise, now_ns: int) -> None:
        page, live = found.reading.page, found.reading.live
        totals = self.totals
        process.page = page
        process.path = found.path
        created = totals.created_unix_ns or page.created_unix_ns
        totals.created_unix_ns = min(created, page.created_unix_ns)
        if page.armed.ever:
            totals.watches(page.track, page.boundary)
            for npu in process.npu_labels.to_create(()):
                totals.create_kinds(npu)
        self._add_rows(process.npu_labels, risen)
        running = live and self._shares_clock(page)
        armed_ns = page.armed.until_ns(now_ns if running else page.armed.last_seen_ns)
        armed_ns = max(armed_ns, process.armed_before_ns)
        if armed_ns > process.armed_ns:
            totals.armed_ns += armed_ns - process.armed_ns
            process.armed_ns = armed_ns
        if live:
            self._note_live(page)
        else:
            self._finish(process)

    def _add_rows(self, npu_labels: NpuLabels, risen: Rise) -> None:
        totals, op_labels = self.totals, self._op_labels
        events: Counter[tuple[str, str]] = Counter()
        for (op, kind, index), row in risen.slots:
            npu = npu_labels.label(index)
            events[kind, npu] += row[0]
            totals.add_slot((op_labels[op], kind, FOLDED_NPU if self._fold_npu else npu), row)
        for labels, count in events.items():
            totals.add_kind(labels, count)
        for (op, index), row in risen.syncs:
            npu = FOLDED_NPU if self._fold_npu else npu_labels.label(index)
            totals.add_sync((op_labels[op], npu), row)
        for (direction, cause, index), row in risen.transfers:
            totals.add_transfer((direction, cause, npu_labels.label(index)), row)
        totals.add_process(risen.process)

    def _add_carried(self, tally: Tally, rows: dict[Key, Row]) -> None:
        totals = self.totals
        if tally.created_unix_ns:
            created = totals.created_unix_ns or tally.created_unix_ns
            totals.created_unix_ns = min(created, tally.created_unix_ns)
        totals.tracked |= tally.tracked
        totals.boundary_watched |= tally.boundary_watched
        for (family, *labels), row in rows.items():
            self._add_carried_row(family, labels, row)

    def _add_carried_row(self, family: str, labels: list[str], row: Row) -> None:
        totals = self.totals
        if family == "slot":
            op, kind, npu = labels
            place = (self._op_labels[op], kind, FOLDED_NPU if self._fold_npu else npu)
            totals.add_slot(place, SlotCounters._make(row))
        elif family == "sync":
            op, npu = labels
            totals.add_sync((self._op_labels[op], FOLDED_NPU if self._fold_npu else npu), row)
        elif family == "transfer":
            direction, cause, npu = labels
            totals.add_transfer((direction, cause, npu), row)
        elif family == "kind":
            kind, npu = labels
            totals.add_kind((kind, npu), row[0])
        elif family == "process":
            totals.add_process(row)
        elif family == "armed":
            totals.armed_ns += row[0]
        elif family == "finished":
            totals.processes_finished += row[0]
        elif family == "failure":
            totals.arm_failures[labels[0]] += row[0]

    def _shares_clock(self, page: Page) -> bool:
        theirs = page.identity.boot_id
        return theirs == self._boot_id or not theirs or not self._boot_id

    def _note_live(self, page: Page) -> None:
        self._live_pages.append(page)
        live = self.totals.live
        live.processes += 1
        live.watched_with_cpu_kernel = max(
            live.watched_with_cpu_kernel, page.watched_with_cpu_kernel
        )
        live.watched_without_cpu_kernel = max(
            live.watched_without_cpu_kernel, page.watched_without_cpu_kernel
        )
        if len(live.modes) < _MAX_INFOS:
            live.modes.add(Mode(page.mode, page.mode_source))
        if len(live.hooks) < _MAX_INFOS:
            live.hooks.add(Hook(page.versions, page.track, page.boundary))

    def _finish(self, process: _Process) -> None:
        if not process.finished:
            process.finished = True
            self.totals.processes_finished += 1

    def _finish_vanished(self, found: set[str], skipped: Iterable[SkippedFile]) -> None:
        unreadable = {one.path for one in skipped if one.error.reason != "vanished"}
        vanished: list[str] = []
        for digest, process in self._processes.items():
            # A page in a folder that cannot be read now may still be there.
            places = {process.path, str(Path(process.path).parent)}
            if process.path not in found and not places & unreadable:
                vanished.append(digest)
                self._finish(process)
        for digest in vanished[:-_MAX_VANISHED]:
            del self._processes[digest]

    def _note_skipped(self, skipped: Iterable[SkippedFile]) -> tuple[SkippedFile, ...]:
        present: set[tuple[str, int]] = set()
        first: list[SkippedFile] = []
        for one in skipped:
            reason = one.error.reason
            if reason == "vanished":
                if any(process.path == one.path for process in self._processes.values()):
                    continue  # what it counted is in the totals: nothing was skipped
            else:
                self.totals.live.unreadable[reason] += 1
            key = (one.path, one.inode)
            present.add(key)
            if key not in self._skipped_before:
                self.totals.skipped[reason] += 1
                first.append(one)
        self._skipped_before = present
        return tuple(first)


def _one_of_each(pages: Iterable[FoundPage]) -> Iterable[FoundPage]:
    """Leave out pages that are in two places, such as a copy; a live one stays."""
    chosen: dict[str, FoundPage] = {}
    for found in pages:
        known = chosen.get(found.digest)
        if known is None or (found.reading.live and not known.reading.live):
            chosen[found.digest] = found
    return chosen.values()
