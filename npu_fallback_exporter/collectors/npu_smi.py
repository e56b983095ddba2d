"""Metrics of the devices, from the last sample of npu-smi."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.samples import Sample

from npu_fallback_exporter.metrics import MetricSpec, device
from npu_fallback_exporter.npu_smi.figures import (
    HUGEPAGE_BYTES,
    MIB,
    ChipFigures,
    ChipKey,
    ChipUsages,
    Health,
    InfoTable,
    Usage,
)
from npu_fallback_exporter.npu_smi.sampler import NpuSmiSampler, Snapshot


class NpuSmiCollector:
    """Figures of the chips, with the same label ``npu`` as the fallbacks.

    Args:
        sampler: gives the last sample; never waited for.
    """

    name = "npu_smi"

    def __init__(self, sampler: NpuSmiSampler) -> None:
        self._sampler = sampler

    def collect(self) -> Iterable[Metric]:
        """Families of the last sample; a sample that is too old gives none but its age."""
        snapshot = self._sampler.snapshot()
        if snapshot.info is not None:
            yield from _chip_families(snapshot, snapshot.info)
        yield from _sampling_families(snapshot)


def utilizations(snapshot: Snapshot) -> dict[str, float]:
    """Return what npu_aicore_utilization_ratio says, by its label."""
    found: dict[str, float] = {}
    for chip in snapshot.info.chips if snapshot.info is not None else ():
        npu, ratio = snapshot.labels.get(chip.key), _utilization(chip)
        if npu is not None and ratio is not None:
            found[npu] = ratio
    return found


class _Family:
    """A family that is being filled; it is left out if it stays empty."""

    def __init__(self, spec: MetricSpec) -> None:
        self._spec = spec
        self.metric = spec.family()

    def add(self, value: float | None, *labels: str) -> None:
        if value is not None:
            by_name = dict(zip(self._spec.labels, labels, strict=True))
            self.metric.samples.append(Sample(self._spec.name, by_name, value))


def _chip_families(snapshot: Snapshot, info: InfoTable) -> Iterable[Metric]:
    families = {
        spec: _Family(spec)
        for spec in device.DEVICE_METRICS
        if not spec.name.startswith("npu_smi_")
    }
    for chip in info.chips:
        npu = snapshot.labels.get(chip.key)
        if npu is not None:
            _add_chip(families, npu, chip)
            usages = snapshot.usages.get(chip.key)
            if usages is None and chip.key.chip is None:
                usages = snapshot.usages.get(ChipKey(chip.key.card, 0))
            if usages is not None:
                _add_usages(families, npu, usages)
    for (npu, process), size in sorted(_process_memory(snapshot, info).items()):
        families[device.PROCESS_MEMORY].add(size, npu, process)
    for family in families.values():
        if family.metric.samples:
            yield family.metric


def _add_chip(families: dict[MetricSpec, _Family], npu: str, chip: ChipFigures) -> None:
    number = "" if chip.key.chip is None else str(chip.key.chip)
    families[device.INFO].add(1, npu, str(chip.key.card), number, chip.name)
    families[device.AICORE_UTILIZATION].add(_utilization(chip), npu)
    families[device.POWER].add(chip.power_watts, npu)
    families[device.TEMPERATURE].add(chip.temperature_celsius, npu)
    for health in Health:
        families[device.HEALTH].add(float(health is chip.health), npu, health.value)
    for memory, usage, unit in (
        ("ddr", chip.ddr_mib, MIB),
        ("hbm", chip.hbm_mib, MIB),
        ("hugepages", chip.hugepages, HUGEPAGE_BYTES),
    ):
        used, total = _bytes(usage, unit)
        families[device.MEMORY_USED].add(used, npu, memory)
        families[device.MEMORY_TOTAL].add(total, npu, memory)


def _add_usages(families: dict[MetricSpec, _Family], npu: str, usages: ChipUsages) -> None:
    families[device.AICPU_UTILIZATION].add(_ratio(usages.aicpu_percent), npu)
    families[device.CTRLCPU_UTILIZATION].add(_ratio(usages.ctrlcpu_percent), npu)
    bandwidth = families[device.MEMORY_BANDWIDTH_UTILIZATION]
    bandwidth.add(_ratio(usages.ddr_bandwidth_percent), npu, "ddr")
    bandwidth.add(_ratio(usages.hbm_bandwidth_percent), npu, "hbm")


def _process_memory(snapshot: Snapshot, info: InfoTable) -> dict[tuple[str, str], float]:
    sizes: dict[tuple[str, str], float] = {}
    for process in info.processes:
        npu = snapshot.labels.get(process.key)
        if npu is not None:
            key = (npu, process.name or "unknown")
            sizes[key] = sizes.get(key, 0.0) + process.memory_mib * MIB
    return sizes


def _sampling_families(snapshot: Snapshot) -> Iterable[Metric]:
    yield device.SMI_UP.of(float(snapshot.up))
    if snapshot.duration_seconds is not None:
        yield device.SMI_SAMPLE_DURATION.of(snapshot.duration_seconds)
    failures = _Family(device.SMI_SAMPLE_FAILURES)
    for reason, count in snapshot.failures.items():
        failures.add(count, reason.value)
    yield failures.metric
    if snapshot.last_success_seconds is not None:
        yield device.SMI_LAST_SUCCESS.of(snapshot.last_success_seconds)


def _utilization(chip: ChipFigures) -> float | None:
    return _ratio(chip.aicore_percent if chip.aicore_percent is not None else chip.npu_percent)


def _ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _bytes(usage: Usage | None, unit: int) -> tuple[float | None, float | None]:
    if usage is None:
        return None, None
    return (None if usage.used is None else usage.used * unit), usage.total * unit
