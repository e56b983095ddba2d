"""The catalogue: every metric of the exporter, declared once.

Collectors make their families from it and ``docs/metrics.md`` is written from it
(``python -m npu_fallback_exporter.metrics``). The ``process_*`` metrics come from
prometheus_client and are declared there.
"""

from __future__ import annotations

from . import device, exporter, hook
from .spec import MetricSpec, MetricType

# Section of the documentation, and its metrics.
CATALOGUE: dict[str, tuple[MetricSpec, ...]] = {
    "From the hook": hook.HOOK_METRICS,
    "From npu-smi": device.DEVICE_METRICS,
    "Of the host": exporter.HOST_METRICS,
    "Of the exporter": exporter.EXPORTER_METRICS,
}

__all__ = ["CATALOGUE", "MetricSpec", "MetricType", "device", "exporter", "hook"]
