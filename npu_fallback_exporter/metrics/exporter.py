"""Metrics of the host, of the server processes seen from outside, and of the exporter itself."""

from __future__ import annotations

from .spec import MetricSpec

HOST_CPU_UTILIZATION = MetricSpec(
    "npu_host_cpu_utilization_ratio",
    "gauge",
    "Utilization of all CPUs of the host together, 0 to 1, since the scrape before (at least one "
    "second). Not included: waiting for disks, and a container's own limit, which "
    "npu_container_cpu_utilization_ratio has. Absent in the first second.",
    unit="ratio",
)
CONTAINER_CPU_UTILIZATION = MetricSpec(
    "npu_container_cpu_utilization_ratio",
    "gauge",
    "CPU use of this exporter's own control group, 0 to 1 of its CPU limit, since the scrape "
    "before: of the server too where both share a container. Not included: other containers of "
    "the pod. Absent where no limit is set.",
    unit="ratio",
)
SERVER_CPU_SECONDS = MetricSpec(
    "npu_server_cpu_seconds_total",
    "counter",
    "CPU seconds, user and system, of the hooked processes together; what a process used after "
    "the last scrape that saw it alive is missing. Absent where this exporter cannot see the very "
    "processes (another pid namespace). Starts again with the exporter.",
    unit="seconds",
)
SERVER_RESIDENT_MEMORY = MetricSpec(
    "npu_server_resident_memory_bytes",
    "gauge",
    "Resident memory in bytes of the hooked processes together; memory that they share counts "
    "once for each. Absent where this exporter cannot see the very processes.",
    unit="bytes",
)
BUILD_INFO = MetricSpec(
    "npu_fallback_exporter_build_info",
    "info",
    "Version of this exporter. Not shown: versions in the server processes, which "
    "npu_fallback_hook_info has.",
    ("version",),
)
COLLECTOR_SUCCESS = MetricSpec(
    "npu_fallback_exporter_collector_success",
    "gauge",
    "1 if the collector answered this scrape, 0 if it failed and its metrics are missing. "
    "Having no data is not a failure.",
    ("collector",),
)
COLLECTOR_DURATION = MetricSpec(
    "npu_fallback_exporter_collector_duration_seconds",
    "gauge",
    "Seconds that the collector took for this scrape. Not included: writing the answer.",
    ("collector",),
    unit="seconds",
)

HOST_METRICS = (
    HOST_CPU_UTILIZATION,
    CONTAINER_CPU_UTILIZATION,
    SERVER_CPU_SECONDS,
    SERVER_RESIDENT_MEMORY,
)
EXPORTER_METRICS = (BUILD_INFO, COLLECTOR_SUCCESS, COLLECTOR_DURATION)
