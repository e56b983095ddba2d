"""Metrics of the devices, as npu-smi gives them, and of the sampling of npu-smi."""

from __future__ import annotations

from .spec import MetricSpec

_ABSENT = "Absent, never 0, where npu-smi does not give it or the last sample is too old."
_IN_TURN = "One card is asked per interval, so that it may be as old as there are cards. "

INFO = MetricSpec(
    "npu_info",
    "info",
    "NPU chips that npu-smi lists: physical id, card, chip on the card and name. "
    "Not shown: chips that npu-smi cannot see from here.",
    ("npu", "card", "chip", "name"),
)
AICORE_UTILIZATION = MetricSpec(
    "npu_aicore_utilization_ratio",
    "gauge",
    "Utilization of the AI cores, 0 to 1, over npu-smi's own window; where its table has NPU Util "
    "in their place (950), that. Not told from idle: a query of npu-smi that failed and printed 0, "
    "a chip that is profiled or cut into virtual ones. " + _ABSENT,
    ("npu",),
    unit="ratio",
)
AICPU_UTILIZATION = MetricSpec(
    "npu_aicpu_utilization_ratio",
    "gauge",
    "Utilization of the AI CPUs of the device, 0 to 1. Not included: the host CPU. "
    + _IN_TURN
    + _ABSENT,
    ("npu",),
    unit="ratio",
)
CTRLCPU_UTILIZATION = MetricSpec(
    "npu_ctrlcpu_utilization_ratio",
    "gauge",
    "Utilization of the control CPUs of the device, 0 to 1. Not included: the host CPU. "
    + _IN_TURN
    + _ABSENT,
    ("npu",),
    unit="ratio",
)
MEMORY_USED = MetricSpec(
    "npu_memory_used_bytes",
    "gauge",
    "Device memory in use, in bytes, by kind of memory (ddr, hbm, hugepages of 2 MiB), over all "
    "processes. Not told apart: what the driver holds for itself. " + _ABSENT,
    ("npu", "memory"),
    unit="bytes",
)
MEMORY_TOTAL = MetricSpec(
    "npu_memory_total_bytes",
    "gauge",
    "Device memory in bytes, by kind of memory (ddr, hbm, hugepages of 2 MiB). Not shown: memory "
    "that the chip does not have. " + _ABSENT,
    ("npu", "memory"),
    unit="bytes",
)
MEMORY_BANDWIDTH_UTILIZATION = MetricSpec(
    "npu_memory_bandwidth_utilization_ratio",
    "gauge",
    "Utilization of the memory bandwidth of the device, 0 to 1, by kind of memory (ddr, hbm). "
    "Not included: copies between devices and the memory of the host. " + _IN_TURN + _ABSENT,
    ("npu", "memory"),
    unit="ratio",
)
POWER = MetricSpec(
    "npu_power_watts",
    "gauge",
    "Power drawn in watts, of the chip or of the card as npu-smi prints it. Left out: 0, which "
    "npu-smi prints for a sensor that it could not read. " + _ABSENT,
    ("npu",),
    unit="watts",
)
TEMPERATURE = MetricSpec(
    "npu_temperature_celsius",
    "gauge",
    "Temperature of the chip in degrees Celsius. " + _ABSENT,
    ("npu",),
    unit="celsius",
)
HEALTH = MetricSpec(
    "npu_health",
    "gauge",
    "1 for the health that npu-smi reports, 0 for the other four (OK, Warning, Alarm, Critical, "
    "UNKNOWN). Not shown: which fault it is. " + _ABSENT,
    ("npu", "status"),
)
PROCESS_MEMORY = MetricSpec(
    "npu_process_memory_bytes",
    "gauge",
    "Device memory held by processes in bytes, summed per process name; a blank name is unknown. "
    "Not shown: processes that npu-smi cannot see from here, and more than 8 on a chip. " + _ABSENT,
    ("npu", "process"),
    unit="bytes",
)
SMI_UP = MetricSpec(
    "npu_smi_up",
    "gauge",
    "1 if the last run of npu-smi info gave a sample that is not too old (three intervals), else "
    "0. Not covered: the runs for finer figures. Absent with --no-npu-smi.",
)
SMI_SAMPLE_DURATION = MetricSpec(
    "npu_smi_sample_duration_seconds",
    "gauge",
    "Seconds that the last run of npu-smi info took, whether it gave a sample or not; a scrape "
    "never waits for it. Not included: the runs for finer figures. Absent before the first run "
    "has ended.",
    unit="seconds",
)
SMI_SAMPLE_FAILURES = MetricSpec(
    "npu_smi_sample_failures_total",
    "counter",
    "Runs of npu-smi that gave no sample: missing, timeout, driver, busy (another container holds "
    "the card), unparsable, permission. Not counted: single values that npu-smi left out, and "
    "figures that a chip does not have. Starts again at 0 with the exporter.",
    ("reason",),
)
SMI_LAST_SUCCESS = MetricSpec(
    "npu_smi_last_success_timestamp_seconds",
    "gauge",
    "Unix time in seconds of the last sample that succeeded. Absent before the first one.",
    unit="seconds",
)

DEVICE_METRICS = (
    INFO,
    AICORE_UTILIZATION,
    AICPU_UTILIZATION,
    CTRLCPU_UTILIZATION,
    MEMORY_USED,
    MEMORY_TOTAL,
    MEMORY_BANDWIDTH_UTILIZATION,
    POWER,
    TEMPERATURE,
    HEALTH,
    PROCESS_MEMORY,
    SMI_UP,
    SMI_SAMPLE_DURATION,
    SMI_SAMPLE_FAILURES,
    SMI_LAST_SUCCESS,
)
