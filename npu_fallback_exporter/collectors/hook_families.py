"""Totals to metric families. Pure: the same totals give the same families in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from operator import add

from prometheus_client import Metric
from prometheus_client.samples import Sample

from ..metrics import MetricSpec, hook
from ..pages.layout import DIRECTIONS
from ..pages.model import FIRST_BUCKET, SlotCounters
from ..totals import Totals

_NS = 1e-9


class HookFamilies:
    """Families of what the hooks count.

    Args:
        totals: where from.
        created_lines: also give the time since when each counter counts.
    """

    def __init__(self, totals: Totals, created_lines: bool = False) -> None:
        self._totals = totals
        self._created_lines = created_lines

    def build(self) -> list[Metric]:
        """All families that have something to say; those of parts not watched are absent."""
        families = [*self._per_op(), self._kind_events(), self._duration()]
        if self._totals.tracked:
            families.extend(self._tracker())
        if self._totals.boundary_watched:
            families.extend(self._driver())
        families.extend(self._processes())
        return [family for family in families if family.samples]

    def _per_op(self) -> list[Metric]:
        events, blocked, errors, moved, host = families = [
            spec.family()
            for spec in (
                hook.EVENTS,
                hook.BLOCKED,
                hook.ERRORS,
                hook.FALLBACK_BYTES,
                hook.HOST_SECONDS,
            )
        ]
        for (op, kind, npu), slot in sorted(self._totals.slots.items()):
            labels = {"op": op, "kind": kind, "npu": npu}
            self._count(events, hook.EVENTS, labels, slot.events)
            if slot.blocked:
                self._count(blocked, hook.BLOCKED, labels, slot.blocked)
            if slot.errors:
                self._count(errors, hook.ERRORS, labels, slot.errors)
            if slot.host_ns_events:
                self._count(host, hook.HOST_SECONDS, labels, slot.host_ns * _NS)
            if slot.events:
                for direction, size in zip(
                    DIRECTIONS, (slot.bytes_d2h, slot.bytes_h2d), strict=True
                ):
                    with_direction = {**labels, "direction": direction}
                    self._count(moved, hook.FALLBACK_BYTES, with_direction, size)
        return families

    def _kind_events(self) -> Metric:
        family = hook.KIND_EVENTS.family()
        for (kind, npu), events in sorted(self._totals.kind_events.items()):
            self._count(family, hook.KIND_EVENTS, {"kind": kind, "npu": npu}, events)
        return family

    def _duration(self) -> Metric:
        over_npus: dict[tuple[str, str], Iterable[int]] = {}
        for (op, kind, _), slot in sorted(self._totals.slots.items()):
            if slot.events:
                known = over_npus.get((op, kind))
                over_npus[op, kind] = tuple(map(add, known, slot)) if known else slot
        family = hook.DURATION.family()
        for (op, kind), numbers in over_npus.items():
            slot = SlotCounters._make(numbers)
            labels = {"op": op, "kind": kind}
            self._histogram(
                family, hook.DURATION, labels, slot[FIRST_BUCKET:], slot.duration_ns * _NS
            )
        return family

    def _tracker(self) -> Iterator[Metric]:
        totals = self._totals
        sizes, copies = hook.TRANSFER_BYTES.family(), hook.TRANSFERS.family()
        summed = dict.fromkeys(DIRECTIONS, 0)
        for (direction, cause, npu), cell in sorted(totals.transfers.items()):
            labels = {"direction": direction, "cause": cause, "npu": npu}
            self._count(sizes, hook.TRANSFER_BYTES, labels, cell.bytes)
            self._count(copies, hook.TRANSFERS, labels, cell.transfers)
            summed[direction] += cell.bytes
        yield from (sizes, copies)
        histogram = hook.TRANSFER_SIZE.family()
        for direction, buckets in totals.size_buckets.items():
            labels = {"direction": direction}
            self._histogram(histogram, hook.TRANSFER_SIZE, labels, buckets, summed[direction])
        yield histogram
        syncs = hook.SYNCS.family()
        for (op, npu), count in sorted(totals.syncs.items()):
            self._count(syncs, hook.SYNCS, {"op": op, "npu": npu}, count)
        yield syncs
        yield self._counter(hook.OPERATORS, totals.operators)
        yield self._counter(hook.DEVICE_ALLOCATIONS, totals.device_allocations)

    def _driver(self) -> Iterator[Metric]:
        sizes, copies = hook.DRIVER_BYTES.family(), hook.DRIVER_TRANSFERS.family()
        for direction, cell in self._totals.driver.items():
            labels = {"direction": direction}
            self._count(sizes, hook.DRIVER_BYTES, labels, cell.bytes)
            self._count(copies, hook.DRIVER_TRANSFERS, labels, cell.transfers)
        yield from (sizes, copies)

    def _processes(self) -> Iterator[Metric]:
        totals, live = self._totals, self._totals.live
        yield self._counter(hook.ARMED_SECONDS, totals.armed_ns * _NS)
        modes = hook.MODE_INFO.family()
        for mode, source in sorted(live.modes):
            modes.samples.append(Sample(hook.MODE_INFO.name, {"mode": mode, "source": source}, 1))
        yield modes
        yield self._hooks()
        yield hook.PROCESSES.of(live.processes)
        yield self._counter(hook.PROCESSES_FINISHED, totals.processes_finished)
        yield _by_reason(hook.ARM_FAILURES, totals.arm_failures)
        if live.processes:
            watched = hook.OPERATORS_WATCHED.family()
            for cpu_kernel, ops in (
                ("yes", live.watched_with_cpu_kernel),
                ("no", live.watched_without_cpu_kernel),
            ):
                labels = {"cpu_kernel": cpu_kernel}
                watched.samples.append(Sample(hook.OPERATORS_WATCHED.name, labels, ops))
            yield watched
        yield self._counter(hook.OPS_OVERFLOWED, totals.ops_overflowed)
        # Present at 0 as well, so that an alert sees it fall. What vanished is not there now.
        now = {reason: live.unreadable[reason] for reason in totals.skipped if reason != "vanished"}
        yield _by_reason(hook.PAGES_UNREADABLE, now)
        yield _by_reason(hook.PAGES_SKIPPED, totals.skipped)

    def _hooks(self) -> Metric:
        family = hook.HOOK_INFO.family()
        names = hook.HOOK_INFO.labels
        values = sorted(
            (
                one.versions.torch,
                one.versions.torch_npu,
                one.versions.cann,
                one.versions.hook,
                one.track,
                one.boundary,
            )
            for one in self._totals.live.hooks
        )
        for row in values:
            family.samples.append(
                Sample(hook.HOOK_INFO.name, dict(zip(names, row, strict=True)), 1)
            )
        return family

    def _counter(self, spec: MetricSpec, value: float) -> Metric:
        family = spec.family()
        self._count(family, spec, {}, value)
        return family

    def _count(
        self, family: Metric, spec: MetricSpec, labels: dict[str, str], value: float
    ) -> None:
        family.samples.append(Sample(spec.name, labels, value))
        self._created(family, labels)

    def _histogram(
        self,
        family: Metric,
        spec: MetricSpec,
        labels: dict[str, str],
        buckets: Iterable[int],
        total: float,
    ) -> None:
        name = spec.family_name
        counts = list(accumulate(buckets))
        for bound, count in zip((*map(repr, spec.bounds), "+Inf"), counts, strict=True):
            with_bound = {**labels, "le": bound}
            family.samples.append(Sample(f"{name}_bucket", with_bound, count))
        family.samples.append(Sample(f"{name}_count", labels, counts[-1]))
        family.samples.append(Sample(f"{name}_sum", labels, total))
        self._created(family, labels)

    def _created(self, family: Metric, labels: dict[str, str]) -> None:
        if self._created_lines:
            totals = self._totals
            created = totals.first_seen_unix_ns.get(labels.get("op", ""), totals.created_unix_ns)
            family.samples.append(Sample(f"{family.name}_created", labels, created * _NS))


def _by_reason(spec: MetricSpec, counts: Mapping[str, int]) -> Metric:
    family = spec.family()
    for reason, count in sorted(counts.items()):
        family.samples.append(Sample(spec.name, {"reason": reason}, count))
    return family
