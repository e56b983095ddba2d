"""Rows about the service: how bad it is, which operators, what the devices do meanwhile."""

from __future__ import annotations

from .layout import Line, Row
from .panels import (
    BYTES,
    BYTES_PER_SECOND,
    CHOSEN,
    NUMBER,
    PER_SECOND,
    SECONDS,
    SHARE,
    Limits,
    Query,
    curves,
    number,
    ranking,
)

_HOST_SECONDS = f"workload_op_kind:npu_fallback_host_seconds:rate5m{{{CHOSEN}}}"
_ARMED = f"(sum(workload:npu_fallback_armed_seconds:rate5m{{{CHOSEN}}}) > 0)"
_EVENTS = f"workload_op_kind:npu_fallback_events:rate5m{{{CHOSEN}}}"
_BYTES = f"workload_op_kind_direction:npu_fallback_transfer_bytes:rate5m{{{CHOSEN}}}"
_BLOCKED = f"workload_op_kind:npu_fallback_blocked:rate5m{{{CHOSEN}}}"
_ERRORS = f"workload_op_kind:npu_fallback_errors:rate5m{{{CHOSEN}}}"
_BUCKETS = f"workload_le:npu_fallback_duration_seconds_bucket:rate5m{{{CHOSEN}}}"
_KIND_EVENTS = f"sum(workload_kind:npu_fallback_events:rate5m{{{CHOSEN}}})"
_OPERATORS = f"(sum(workload:npu_operators:rate5m{{{CHOSEN}}}) > 0)"
_FIRING = 'ALERTS{alertstate="firing",alertname=~"Npu.+",' + CHOSEN + "}"

VERDICT = Row(
    "Verdict",
    [
        Line(
            5,
            [
                number(
                    "Time in fallbacks",
                    "Share of the time of all processes that goes into operators computed on the "
                    "host CPU. Waiting for the device is not in it. Above 20% an alert fires.",
                    f"sum({_HOST_SECONDS}) / {_ARMED}",
                    SHARE,
                    Limits(look=0.05, bad=0.2),
                ),
                number(
                    "Fallbacks per operator",
                    "Share of all operators that fell back. The budget of the alert is 0.1%.",
                    f"{_KIND_EVENTS} / {_OPERATORS}",
                    SHARE,
                    Limits(look=0.0005, bad=0.001),
                ),
                number(
                    "Operators falling back",
                    "Distinct operators that fell back in the last five minutes.",
                    f"count(count by (op) ({_EVENTS} > 0)) or vector(0)",
                    NUMBER,
                    Limits(look=1, bad=10),
                ),
                number(
                    "AI cores busy",
                    "Mean utilization of the AI cores of the chips in use, by npu-smi or "
                    "npu-exporter.",
                    f"avg(workload:npu_aicore_utilization:avg{{{CHOSEN}}})",
                    SHARE,
                ),
                number(
                    "Refused",
                    "Operators per second that strict mode refused.",
                    f"sum({_BLOCKED}) or vector(0)",
                    PER_SECOND,
                    Limits(look=0.0001, bad=0.01),
                ),
                number(
                    "Alerts",
                    "Alerts of these workloads that fire now. What to do: docs/runbook.md.",
                    f"count({_FIRING}) or vector(0)",
                    NUMBER,
                    Limits(look=1, bad=3),
                ),
            ],
        )
    ],
)

OPERATORS = Row(
    "Top operators",
    [
        Line(
            8,
            [
                curves(
                    "Time by operator",
                    "Share of the time of all processes, by operator computed on the host. This "
                    "is the order in which to work on them.",
                    [Query(f"sum by (op) ({_HOST_SECONDS}) / scalar{_ARMED}", "{{op}}")],
                    SHARE,
                    stacked=True,
                ),
                curves(
                    "Fallbacks by operator",
                    "Events per second. One call can be several events.",
                    [Query(f"sum by (op) ({_EVENTS})", "{{op}}")],
                    PER_SECOND,
                    stacked=True,
                ),
                curves(
                    "Bytes by operator",
                    "Bytes per second that fallbacks move, both ways.",
                    [Query(f"sum by (op) ({_BYTES})", "{{op}}")],
                    BYTES_PER_SECOND,
                    stacked=True,
                ),
            ],
        ),
        Line(
            8,
            [
                ranking(
                    "Ranking",
                    "The last five minutes. Kind dispatcher: no NPU kernel is registered; "
                    "explicit_kernel: the NPU kernel computes on the host.",
                    [
                        (
                            Query(f"sum by (op, kind) ({_HOST_SECONDS}) / scalar{_ARMED}", "time"),
                            SHARE,
                        ),
                        (Query(f"sum by (op, kind) ({_EVENTS})", "events"), PER_SECOND),
                        (Query(f"sum by (op, kind) ({_BYTES})", "bytes"), BYTES_PER_SECOND),
                    ],
                    keys=("op", "kind"),
                ),
                curves(
                    "How long a fallback takes",
                    "Wall time of an event, waiting for queued device work included, estimated "
                    "from the buckets of a histogram: half of the events are faster than the "
                    "median, one in a hundred is slower than the other curve.",
                    [
                        Query(f"histogram_quantile(0.5, sum by (le) ({_BUCKETS}))", "median"),
                        Query(f"histogram_quantile(0.99, sum by (le) ({_BUCKETS}))", "99 of 100"),
                    ],
                    SECONDS,
                ),
                curves(
                    "Refused and failed",
                    "Operators per second that strict mode refused, and whose computation on the "
                    "host raised an exception.",
                    [
                        Query(f"sum by (op) ({_BLOCKED})", "refused {{op}}"),
                        Query(f"sum by (op) ({_ERRORS})", "failed {{op}}"),
                    ],
                    PER_SECOND,
                ),
            ],
            widths=(10, 7, 7),
        ),
    ],
)

UTILIZATION = Row(
    "NPU, CPU and fallbacks",
    [
        Line(
            9,
            [
                curves(
                    "Taking turns",
                    "AI cores, CPU and fallbacks on one time axis. Fallbacks that hurt show as AI "
                    "cores and CPU that mirror each other. CPU: cores used per server process.",
                    [
                        Query(f"avg(workload:npu_aicore_utilization:avg{{{CHOSEN}}})", "AI cores"),
                        Query(
                            "avg(workload:npu_server_cpu_cores_per_process:ratio_rate5m"
                            f"{{{CHOSEN}}})",
                            "CPU cores per process",
                        ),
                        Query(
                            f"max(workload:npu_host_cpu_utilization:max{{{CHOSEN}}})", "host CPU"
                        ),
                        Query(_KIND_EVENTS, "fallbacks"),
                    ],
                    SHARE,
                    right_axis={"fallbacks": PER_SECOND},
                ),
                curves(
                    "AI cores by chip",
                    "Utilization of each chip that a chosen workload counts on, by node and "
                    "physical id. A chip called logical-N has no utilization.",
                    [
                        Query(
                            'node_npu:npu_aicore_utilization:ratio{npu=~"$npu"} and on (node, npu) '
                            f"npu_fallback_kind_events_total{{{CHOSEN}}}",
                            "{{node}} / {{npu}}",
                        )
                    ],
                    SHARE,
                    top=1,
                ),
                curves(
                    "Fallbacks by chip",
                    "Events per second of each chip, by node and physical id.",
                    [
                        Query(
                            "sum by (node, npu) (rate(npu_fallback_kind_events_total"
                            f'{{{CHOSEN},npu=~"$npu"}}[5m]))',
                            "{{node}} / {{npu}}",
                        )
                    ],
                    PER_SECOND,
                ),
            ],
            widths=(12, 6, 6),
        )
    ],
)

TRANSFERS = Row(
    "Transfers",
    [
        Line(
            8,
            [
                curves(
                    f"{title} by cause",
                    f"Bytes per second {way} through PyTorch's operators. Cause user: the program "
                    "asks for it; sync: .item() and its like; fallback and explicit_kernel: "
                    "operators that are computed on the host.",
                    [
                        Query(
                            "sum by (cause) (workload_direction_cause:npu_transfer_bytes:rate5m"
                            f'{{{CHOSEN},direction="{direction}"}})',
                            "{{cause}}",
                        )
                    ],
                    BYTES_PER_SECOND,
                    stacked=True,
                )
                for title, way, direction in (
                    ("To the host", "to the host", "d2h"),
                    ("To the device", "to the device", "h2d"),
                )
            ],
        ),
        Line(
            8,
            [
                curves(
                    "Copies by cause",
                    "Copies per second, both ways, through PyTorch's operators. Many small ones "
                    "cost more than their bytes tell.",
                    [
                        Query(
                            "sum by (cause) (workload_direction_cause:npu_transfers:rate5m"
                            f"{{{CHOSEN}}})",
                            "{{cause}}",
                        )
                    ],
                    PER_SECOND,
                    stacked=True,
                ),
                curves(
                    "Bytes per operator",
                    "Bytes moved for each operator that ran: the same work should need the same. "
                    "An alert compares d2h with the hour before.",
                    [
                        Query(
                            "avg by (direction) (workload_direction:npu_transfer_bytes_per_operator"
                            f":ratio_rate5m{{{CHOSEN}}})",
                            "{{direction}}",
                        )
                    ],
                    BYTES,
                ),
                curves(
                    "Driver and PyTorch",
                    "All bytes per second at the boundary to the driver beside those through "
                    "PyTorch's operators. What is between them was copied past PyTorch. Without "
                    "curves of the driver nobody watches that boundary.",
                    [
                        Query(
                            "sum by (direction) (workload_direction:npu_driver_transfer_bytes"
                            f":rate5m{{{CHOSEN}}})",
                            "driver {{direction}}",
                        ),
                        Query(
                            "sum by (direction) (workload_direction_cause:npu_transfer_bytes"
                            f":rate5m{{{CHOSEN}}})",
                            "PyTorch {{direction}}",
                        ),
                    ],
                    BYTES_PER_SECOND,
                ),
            ],
        ),
    ],
)

WAITS = Row(
    "Waits",
    [
        Line(
            7,
            [
                curves(
                    "Waits by operator",
                    "Times per second that the host waits for a value of the device. "
                    "aten::_local_scalar_dense is .item(), bool() and float() of a tensor; the "
                    "others have results whose shape depends on data.",
                    [
                        Query(
                            f"sum by (op) (workload_op:npu_syncs:rate5m{{{CHOSEN}}})",
                            "{{op}}",
                        )
                    ],
                    PER_SECOND,
                    stacked=True,
                ),
                curves(
                    "Waits per operator",
                    "Share of operators that make the host wait, by workload. An alert compares it "
                    "with the hour before.",
                    [
                        Query(
                            f"workload:npu_syncs_per_operator:ratio_rate5m{{{CHOSEN}}}",
                            "{{namespace}}/{{workload}}",
                        )
                    ],
                    SHARE,
                ),
            ],
        )
    ],
)
