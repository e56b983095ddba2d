"""What happened between two reports on the same counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import QuestionError
from .model import DriverSum, OpCost, Report, TransferSum, ranked


def between(earlier: Report, later: Report) -> Report:
    """Return a report on the time from `earlier` to `later`.

    What holds only now (processes, versions, sources, devices) is that of `later`.

    Raises:
        QuestionError: a counter fell, so that they are not two readings of the same counters.
    """
    before = {(op.op, op.kind): op for op in earlier.ops}
    ops = [_op(op, before.pop((op.op, op.kind), None)) for op in later.ops]
    if before:
        raise _others(f"{next(iter(before))[0]} is gone")
    moved = {(one.direction, one.cause): one for one in earlier.transfers}
    driver = {one.direction: one for one in earlier.driver}
    return replace(
        later,
        since_unix=earlier.made_unix,
        processes_finished=_less(later.processes_finished, earlier.processes_finished),
        armed_seconds=max(0.0, later.armed_seconds - earlier.armed_seconds),
        operators=_rise(later.operators, earlier.operators),
        device_allocations=_rise(later.device_allocations, earlier.device_allocations),
        ops=ranked(op for op in ops if op.events or op.blocked or op.errors),
        transfers=tuple(
            _transfer(one, moved.get((one.direction, one.cause))) for one in later.transfers
        ),
        syncs=_counts(later.syncs, earlier.syncs),
        driver=tuple(_driver(one, driver.get(one.direction)) for one in later.driver),
        arm_failures=_counts(later.arm_failures, earlier.arm_failures),
        ops_overflowed=_less(later.ops_overflowed, earlier.ops_overflowed),
        history=None,
    )


def _op(now: OpCost, before: OpCost | None) -> OpCost:
    if before is None:
        return now
    steps = zip(now.buckets, before.buckets or (0,) * len(now.buckets), strict=False)
    return replace(
        now,
        events=_less(now.events, before.events),
        blocked=_less(now.blocked, before.blocked),
        errors=_less(now.errors, before.errors),
        host_seconds=None
        if now.host_seconds is None
        else max(0.0, now.host_seconds - (before.host_seconds or 0.0)),
        duration_seconds=max(0.0, now.duration_seconds - before.duration_seconds),
        bytes_d2h=_less(now.bytes_d2h, before.bytes_d2h),
        bytes_h2d=_less(now.bytes_h2d, before.bytes_h2d),
        buckets=tuple(_less(later, earlier) for later, earlier in steps),
        npus=_counts(now.npus, before.npus),
    )


def _transfer(now: TransferSum, before: TransferSum | None) -> TransferSum:
    if before is None:
        return now
    return replace(
        now,
        bytes=_less(now.bytes, before.bytes),
        transfers=_less(now.transfers, before.transfers),
    )


def _driver(now: DriverSum, before: DriverSum | None) -> DriverSum:
    if before is None:
        return now
    return replace(
        now,
        bytes=_less(now.bytes, before.bytes),
        transfers=_less(now.transfers, before.transfers),
    )


def _counts(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    rises = {name: _less(number, before.get(name, 0)) for name, number in now.items()}
    return {name: rise for name, rise in rises.items() if rise}


def _rise(now: int | None, before: int | None) -> int | None:
    return None if now is None else _less(now, before or 0)


def _less(now: int, before: int) -> int:
    if now < before:
        raise _others(f"a counter fell from {before} to {now}")
    return now - before


def _others(why: str) -> QuestionError:
    return QuestionError(
        f"these are not two readings of the same counters ({why})",
        "give --since a report on the same folder or exporter, from before",
    )
