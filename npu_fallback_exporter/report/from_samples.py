"""The samples of one scrape to a report, wherever the scrape comes from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from prometheus_client.samples import Sample

from ..errors import SourceError
from ..metrics import device, exporter, hook
from .model import (
    FAILED,
    GOOD,
    OFF,
    Device,
    DriverSum,
    HookVersions,
    ModeInForce,
    OpCost,
    Report,
    Source,
    TransferSum,
    ranked,
)

_Labels = Mapping[str, str]
_Found = TypeVar("_Found")
_OPS = (hook.EVENTS, hook.BLOCKED, hook.ERRORS, hook.FALLBACK_BYTES, hook.HOST_SECONDS)
_DURATION = hook.DURATION.family_name
_NPU_SMI = "npu_smi"


class Samples:
    """Samples by name; those that are not a finite number are left out."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_name: dict[str, list[tuple[_Labels, float]]] = defaultdict(list)
        for sample in samples:
            if math.isfinite(sample.value):
                self._by_name[sample.name].append((sample.labels, sample.value))

    def of(self, name: str) -> list[tuple[_Labels, float]]:
        """Labels and values of one name."""
        return self._by_name.get(name, [])

    def one(self, name: str) -> float | None:
        """Value of a name without labels; None: it is absent."""
        found = self.of(name)
        return found[0][1] if found else None

    def summed(
        self, name: str, key: Callable[[_Labels], _Found], only: _Labels | None = None
    ) -> dict[_Found, float]:
        """Return sums by what `key` makes of the labels, of samples that have the labels `only`."""
        sums: dict[_Found, float] = defaultdict(float)
        for labels, value in self.of(name):
            if all(labels.get(label) == wanted for label, wanted in (only or {}).items()):
                sums[key(labels)] += value
        return dict(sums)

    def created(self) -> float | None:
        """Unix time since when the oldest counter counts, where the scrape says so."""
        name = f"{hook.EVENTS.family_name}_created"
        times = [value for _, value in self.of(name)]
        times += [value for _, value in self.of(f"{hook.ARMED_SECONDS.family_name}_created")]
        return min(times, default=None)


def report_of(samples: Samples, *, origin: str, made_unix: float, version: str) -> Report:
    """Build a report.

    Args:
        samples: of one scrape.
        origin: of the report.
        made_unix: when the scrape was made.
        version: of this package, where the scrape does not name the exporter's own.

    Raises:
        SourceError: it is the scrape of something else.
    """
    armed = samples.one(hook.ARMED_SECONDS.name)
    if armed is None:
        raise SourceError(
            f"there is no {hook.ARMED_SECONDS.name}",
            "take the scrape from an npu-fallback-exporter",
        )
    return Report(
        made_unix=made_unix,
        origin=origin,
        exporter_version=_version(samples) or version,
        since_unix=samples.created(),
        processes=_whole(samples.one(hook.PROCESSES.name)) or 0,
        processes_finished=_whole(samples.one(hook.PROCESSES_FINISHED.name)) or 0,
        armed_seconds=armed,
        operators=_whole(samples.one(hook.OPERATORS.name)),
        device_allocations=_whole(samples.one(hook.DEVICE_ALLOCATIONS.name)),
        modes=tuple(
            ModeInForce(labels.get("mode", ""), labels.get("source", ""))
            for labels, _ in samples.of(hook.MODE_INFO.name)
        ),
        hooks=tuple(_hook(labels) for labels, _ in samples.of(hook.HOOK_INFO.name)),
        ops=ranked(_ops(samples)),
        transfers=_transfers(samples),
        syncs={op: int(n) for op, n in samples.summed(hook.SYNCS.name, _label("op")).items()},
        driver=_driver(samples),
        devices=_devices(samples),
        host_cpu=samples.one(exporter.HOST_CPU_UTILIZATION.name),
        container_cpu=samples.one(exporter.CONTAINER_CPU_UTILIZATION.name),
        sources=tuple(_sources(samples, made_unix)),
        arm_failures=_reasons(samples, hook.ARM_FAILURES.name),
        pages_unreadable=_reasons(samples, hook.PAGES_UNREADABLE.name),
        ops_overflowed=_whole(samples.one(hook.OPS_OVERFLOWED.name)) or 0,
    )


def _ops(samples: Samples) -> Iterable[OpCost]:
    events, blocked, errors, _, host = (samples.summed(spec.name, _op_and_kind) for spec in _OPS)
    to_host, to_device = (
        samples.summed(hook.FALLBACK_BYTES.name, _op_and_kind, {"direction": direction})
        for direction in ("d2h", "h2d")
    )
    seconds = samples.summed(f"{_DURATION}_sum", _op_and_kind)
    buckets = _buckets(samples)
    npus: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for (key, npu), value in samples.summed(
        hook.EVENTS.name, lambda labels: (_op_and_kind(labels), labels.get("npu", ""))
    ).items():
        npus[key][npu] = int(value)
    for key in dict.fromkeys((*events, *blocked, *errors)):
        yield OpCost(
            *key,
            events=int(events.get(key, 0)),
            blocked=int(blocked.get(key, 0)),
            errors=int(errors.get(key, 0)),
            host_seconds=host.get(key),
            duration_seconds=seconds.get(key, 0.0),
            bytes_d2h=int(to_host.get(key, 0)),
            bytes_h2d=int(to_device.get(key, 0)),
            buckets=buckets.get(key, ()),
            npus={npu: count for npu, count in sorted(npus[key].items()) if count},
        )


def _buckets(samples: Samples) -> dict[tuple[str, str], tuple[int, ...]]:
    cumulative: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for labels, value in samples.of(f"{_DURATION}_bucket"):
        try:
            bound = float(labels["le"])
        except (KeyError, ValueError):
            continue
        cumulative[_op_and_kind(labels)].append((bound, int(value)))
    expected = (*hook.DURATION.bounds, math.inf)
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for key, rows in cumulative.items():
        rows.sort()
        if tuple(bound for bound, _ in rows) == expected:
            counts = [count for _, count in rows]
            steps = (now - before for before, now in zip([0, *counts], counts, strict=False))
            found[key] = tuple(max(0, step) for step in steps)
    return found


def _transfers(samples: Samples) -> tuple[TransferSum, ...]:
    def key(labels: _Labels) -> tuple[str, str]:
        return labels.get("direction", ""), labels.get("cause", "")

    copies = samples.summed(hook.TRANSFERS.name, key)
    sizes = samples.summed(hook.TRANSFER_BYTES.name, key)
    sums = (
        TransferSum(*of, bytes=int(size), transfers=int(copies.get(of, 0)))
        for of, size in sizes.items()
    )
    return tuple(sorted(sums, key=lambda one: (-one.bytes, one.direction, one.cause)))


def _driver(samples: Samples) -> tuple[DriverSum, ...]:
    copies = samples.summed(hook.DRIVER_TRANSFERS.name, _label("direction"))
    sizes = samples.summed(hook.DRIVER_BYTES.name, _label("direction"))
    return tuple(
        DriverSum(direction, int(size), int(copies.get(direction, 0)))
        for direction, size in sorted(sizes.items())
    )


def _hook(labels: _Labels) -> HookVersions:
    return HookVersions(*(labels.get(name, "") for name in hook.HOOK_INFO.labels))


def _devices(samples: Samples) -> tuple[Device, ...]:
    by_npu = _label("npu")
    names = {
        labels.get("npu", ""): labels.get("name", "") for labels, _ in samples.of(device.INFO.name)
    }
    utilization = samples.summed(device.AICORE_UTILIZATION.name, by_npu)
    used, total = (
        _memory(samples, spec.name) for spec in (device.MEMORY_USED, device.MEMORY_TOTAL)
    )
    health = {
        labels.get("npu", ""): labels.get("status", "")
        for labels, value in samples.of(device.HEALTH.name)
        if value == 1
    }
    npus = sorted({*names, *utilization}, key=lambda npu: (len(npu), npu))
    return tuple(
        Device(
            npu,
            names.get(npu, ""),
            utilization.get(npu),
            used.get(npu),
            total.get(npu),
            health.get(npu, ""),
        )
        for npu in npus
    )


def _memory(samples: Samples, name: str) -> dict[str, int]:
    """Device memory by NPU: HBM where there is any, else DDR."""
    sizes: dict[str, int] = {}
    for memory in ("ddr", "hbm"):
        for npu, size in samples.summed(name, _label("npu"), {"memory": memory}).items():
            sizes[npu] = int(size) or sizes.get(npu, 0)
    return sizes


def _sources(samples: Samples, made_unix: float) -> Iterable[Source]:
    for labels, value in samples.of(exporter.COLLECTOR_SUCCESS.name):
        name = labels.get("collector", "")
        if name != _NPU_SMI:
            yield Source(name, GOOD if value == 1 else FAILED)
    up = samples.one(device.SMI_UP.name)
    if up is None and samples.of(exporter.COLLECTOR_SUCCESS.name):
        yield Source(_NPU_SMI, OFF)
    elif up is not None:
        last = samples.one(device.SMI_LAST_SUCCESS.name)
        age = None if last is None else max(0.0, made_unix - last)
        yield Source(_NPU_SMI, GOOD if up == 1 else FAILED, age_seconds=age)


def _reasons(samples: Samples, name: str) -> dict[str, int]:
    sums = samples.summed(name, _label("reason"))
    return {reason: int(count) for reason, count in sorted(sums.items()) if count}


def _version(samples: Samples) -> str:
    found = samples.of(exporter.BUILD_INFO.name)
    return found[0][0].get("version", "") if found else ""


def _op_and_kind(labels: _Labels) -> tuple[str, str]:
    return labels.get("op", ""), labels.get("kind", "")


def _label(name: str) -> Callable[[_Labels], str]:
    return lambda labels: labels.get(name, "")


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
