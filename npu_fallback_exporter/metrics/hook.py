"""Metrics of what the hooks in the server processes count."""

from __future__ import annotations

from .spec import MetricSpec

_RESTARTS = (
    "Falls only if this exporter restarts after somebody else removed or damaged files in the "
    "pages folder."
)

EVENTS = MetricSpec(
    "npu_fallback_events_total",
    "counter",
    "Operator calls computed on the host CPU although their tensors live on the NPU. "
    "Not counted: transfers that the program asked for (.cpu(), .to()), .item() and other waits, "
    "host pre-processing, AI-CPU kernels, graph replay, refused calls and calls that raised. "
    "Kind explicit_kernel is not counted with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
    ("op", "kind", "npu"),
)
KIND_EVENTS = MetricSpec(
    "npu_fallback_kind_events_total",
    "counter",
    "Sum of npu_fallback_events_total over all operators, present from 0 as soon as a process is "
    "armed; for alerts and gates. Not counted: what npu_fallback_events_total does not count. "
    + _RESTARTS,
    ("kind", "npu"),
)
BLOCKED = MetricSpec(
    "npu_fallback_blocked_total",
    "counter",
    "Operator calls refused before anything was copied or computed, by this product's strict mode "
    "or by torch_npu's own switch. Not counted: calls that ran and were only reported. "
    + _RESTARTS,
    ("op", "kind", "npu"),
)
ERRORS = MetricSpec(
    "npu_fallback_errors_total",
    "counter",
    "Fallbacks whose CPU computation raised, or that have no CPU kernel. "
    "Not counted: refused calls. " + _RESTARTS,
    ("op", "kind", "npu"),
)
FALLBACK_BYTES = MetricSpec(
    "npu_fallback_transfer_bytes_total",
    "counter",
    "Bytes moved between host and device by fallback events; in nested events they belong to the "
    "innermost. Not counted: copies outside fallback events. " + _RESTARTS,
    ("op", "kind", "npu", "direction"),
    unit="bytes",
)
HOST_SECONDS = MetricSpec(
    "npu_fallback_host_seconds_total",
    "counter",
    "Seconds of fallback events: host computation, later copies and the way back; in nested "
    "events they belong to the innermost. Not counted: the first copy to the host, which waits "
    "for all device work queued before. Absent where it is not measured. " + _RESTARTS,
    ("op", "kind", "npu"),
    unit="seconds",
)
DURATION = MetricSpec(
    "npu_fallback_duration_seconds",
    "histogram",
    "Full wall time of fallback events in seconds, waiting for device work queued before "
    "included; for the cost of the fallback itself use npu_fallback_host_seconds_total. "
    "Not counted: refused calls and calls that raised. " + _RESTARTS,
    ("op", "kind"),
    unit="seconds",
    bounds=(1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0),
)
TRANSFER_BYTES = MetricSpec(
    "npu_transfer_bytes_total",
    "counter",
    "Bytes copied between host and device through PyTorch's operators, as sized on the device "
    "side. Not counted: copies that pass no operator, such as a library's own calls of the "
    "driver. Absent with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
    ("direction", "cause", "npu"),
    unit="bytes",
)
TRANSFERS = MetricSpec(
    "npu_transfers_total",
    "counter",
    "Copies between host and device through PyTorch's operators. Not counted: copies that pass no "
    "operator. Absent with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
    ("direction", "cause", "npu"),
)
TRANSFER_SIZE = MetricSpec(
    "npu_transfer_size_bytes",
    "histogram",
    "Sizes in bytes of the copies of npu_transfers_total. Not counted: copies that pass no "
    "operator. Absent with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
    ("direction",),
    unit="bytes",
    bounds=tuple(float(1 << power) for power in (6, 10, 14, 18, 22, 26, 30)),
)
DRIVER_BYTES = MetricSpec(
    "npu_driver_transfer_bytes_total",
    "counter",
    "Bytes copied between host and device at the driver boundary, whoever asked for them. "
    "Not counted: forms of copy that label boundary of npu_fallback_hook_info calls partial. "
    "Absent when no process watches the boundary. " + _RESTARTS,
    ("direction",),
    unit="bytes",
)
DRIVER_TRANSFERS = MetricSpec(
    "npu_driver_transfers_total",
    "counter",
    "Copies between host and device at the driver boundary, whoever asked for them. "
    "Not counted: forms of copy that label boundary of npu_fallback_hook_info calls partial. "
    "Absent when no process watches the boundary. " + _RESTARTS,
    ("direction",),
)
SYNCS = MetricSpec(
    "npu_syncs_total",
    "counter",
    "Host waits for a value of the device: aten::_local_scalar_dense (.item(), bool()) and "
    "operators whose result shape depends on data. Not counted: explicit synchronisation and the "
    "waits inside copies. Absent with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
    ("op", "npu"),
)
OPERATORS = MetricSpec(
    "npu_operators_total",
    "counter",
    "Outermost operators run in armed processes, on host and device alike. Not counted: operators "
    "called by operators, and graph replay. Absent with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
)
DEVICE_ALLOCATIONS = MetricSpec(
    "npu_device_allocations_total",
    "counter",
    "Device tensors allocated by operators; flat while armed means no eager device work. "
    "Not counted: graph replay and allocations that pass no operator. "
    "Absent with NPU_FALLBACK_TRACK=fallbacks. " + _RESTARTS,
)
ARMED_SECONDS = MetricSpec(
    "npu_fallback_armed_seconds_total",
    "counter",
    "Seconds that processes were armed, summed over processes; the denominator of time shares. "
    "Not counted: for a process that was killed, the time after its last event. " + _RESTARTS,
    unit="seconds",
)
MODE_INFO = MetricSpec(
    "npu_fallback_mode_info",
    "info",
    "Modes in force in live processes (observe, warn, strict) and where each came from: the "
    "environment variable, api or default. Not shown: processes that have ended.",
    ("mode", "source"),
)
HOOK_INFO = MetricSpec(
    "npu_fallback_hook_info",
    "info",
    "Versions seen by the hooks of live processes, what they track (all, fallbacks) and how much "
    "of the driver boundary they watch (full, partial, none). "
    "Not shown: processes that have ended.",
    ("torch_version", "torch_npu_version", "cann_version", "hook_version", "track", "boundary"),
)
PROCESSES = MetricSpec(
    "npu_fallback_processes",
    "gauge",
    "Live processes that have a page. Not counted: processes in which the hook could not be armed.",
)
PROCESSES_FINISHED = MetricSpec(
    "npu_fallback_processes_finished_total",
    "counter",
    "Processes with a page that have ended. Not counted: processes whose page went away before "
    "an exporter saw it.",
)
ARM_FAILURES = MetricSpec(
    "npu_fallback_arm_failures_total",
    "counter",
    "Server processes in which the hook could not be armed, so that nothing is counted there. "
    "Not counted: failures that could not be written to the pages folder either, and those beyond "
    "1000 in one folder.",
    ("reason",),
)
OPERATORS_WATCHED = MetricSpec(
    "npu_fallback_operators_watched",
    "gauge",
    "Operators whose NPU dispatch ends in the fallback, with a CPU kernel (they can fall back) or "
    "without (they can only raise); the maximum over live processes. "
    "Not counted: explicit kernels.",
    ("cpu_kernel",),
)
OPS_OVERFLOWED = MetricSpec(
    "npu_fallback_ops_overflowed_total",
    "counter",
    "Distinct operators without a slot in their process (NPU_FALLBACK_MAX_OPS, counted per "
    "process) or without a label here (--max-ops); their events are in op __other__. "
    "Not counted: operators that never fell back. " + _RESTARTS,
)
PAGES_UNREADABLE = MetricSpec(
    "npu_fallback_pages_unreadable",
    "gauge",
    "Files in the pages folders that cannot be read as pages now. What was read of them before "
    "stays in the totals. Not counted: files without the suffix .page.",
    ("reason",),
)
PAGES_SKIPPED = MetricSpec(
    "npu_fallback_pages_skipped_total",
    "counter",
    "Files that could not be read as pages, each counted once. "
    "Not counted: files without the suffix .page. Starts again at 0 with the exporter.",
    ("reason",),
)

HOOK_METRICS = (
    EVENTS,
    KIND_EVENTS,
    BLOCKED,
    ERRORS,
    FALLBACK_BYTES,
    HOST_SECONDS,
    DURATION,
    TRANSFER_BYTES,
    TRANSFERS,
    TRANSFER_SIZE,
    DRIVER_BYTES,
    DRIVER_TRANSFERS,
    SYNCS,
    OPERATORS,
    DEVICE_ALLOCATIONS,
    ARMED_SECONDS,
    MODE_INFO,
    HOOK_INFO,
    PROCESSES,
    PROCESSES_FINISHED,
    ARM_FAILURES,
    OPERATORS_WATCHED,
    OPS_OVERFLOWED,
    PAGES_UNREADABLE,
    PAGES_SKIPPED,
)
