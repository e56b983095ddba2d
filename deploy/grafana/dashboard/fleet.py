"""Rows about the pods: the workers, the exporters themselves, and a canary beside its baseline."""

from __future__ import annotations

from .layout import Line, Row
from .panels import (
    BYTES,
    CHOSEN,
    NUMBER,
    PER_SECOND,
    SECONDS,
    SHARE,
    Limits,
    Panel,
    Query,
    curves,
    number,
    ranking,
)

WORKERS = Row(
    "Workers",
    [
        Line(
            7,
            [
                curves(
                    "Time in fallbacks by pod",
                    "Share of the time of each pod's processes. One pod above the others: look at "
                    "its requests, its chip, its version.",
                    [
                        Query(
                            f"sum by (pod) (rate(npu_fallback_host_seconds_total{{{CHOSEN}}}[5m]))"
                            " / sum by (pod) "
                            f"(rate(npu_fallback_armed_seconds_total{{{CHOSEN}}}[5m]))",
                            "{{pod}}",
                        )
                    ],
                    SHARE,
                ),
                curves(
                    "Operators by pod",
                    "Outermost operators per second: the traffic. Replay of captured graphs is not "
                    "in it.",
                    [Query(f"sum by (pod) (rate(npu_operators_total{{{CHOSEN}}}[5m]))", "{{pod}}")],
                    PER_SECOND,
                ),
                curves(
                    "Processes",
                    "Live processes that count, by pod, and pods in which none does.",
                    [
                        Query(f"sum by (pod) (npu_fallback_processes{{{CHOSEN}}})", "{{pod}}"),
                        Query(
                            f"sum(workload:npu_fallback_unarmed_pods:sum{{{CHOSEN}}})",
                            "pods without",
                        ),
                    ],
                    NUMBER,
                ),
                curves(
                    "Memory of the servers",
                    "Resident memory of the counting processes, by pod. Absent where the exporter "
                    "cannot see them.",
                    [
                        Query(
                            f"sum by (pod) (npu_server_resident_memory_bytes{{{CHOSEN}}})",
                            "{{pod}}",
                        )
                    ],
                    BYTES,
                ),
            ],
        )
    ],
)

_UP = 'up{job=~"npu-fallback-exporter(-node)?",' + CHOSEN + "}"

EXPORTERS = Row(
    "Exporters",
    [
        Line(
            7,
            [
                curves(
                    "Exporters that answer",
                    "Of all that Prometheus knows.",
                    [Query(f"sum({_UP})", "answer"), Query(f"count({_UP})", "known")],
                    NUMBER,
                ),
                curves(
                    "Failing collectors",
                    "Exporters in which a collector fails, by collector. npu_mapping: pages and "
                    "npu-smi contradict each other about a chip.",
                    [
                        Query(
                            "sum by (collector) (npu_fallback_exporter_collector_success"
                            f"{{{CHOSEN}}} == bool 0)",
                            "{{collector}}",
                        )
                    ],
                    NUMBER,
                ),
                curves(
                    "Pages that cannot be read",
                    "Files in the pages folders, now, by reason; and processes in which the hook "
                    "could not be armed.",
                    [
                        Query(
                            f"sum by (reason) (npu_fallback_pages_unreadable{{{CHOSEN}}}) > 0 or "
                            f"sum(npu_fallback_pages_unreadable{{{CHOSEN}}})",
                            "unreadable {{reason}}",
                        ),
                        Query(
                            f"sum(npu_fallback_arm_failures_total{{{CHOSEN}}})",
                            "not armed",
                        ),
                    ],
                    NUMBER,
                ),
            ],
        ),
        Line(
            7,
            [
                curves(
                    "Age of npu-smi's sample",
                    "Seconds since npu-smi last answered, the oldest by node. Absent with "
                    "--no-npu-smi.",
                    [
                        Query(
                            "max by (node) (time() - npu_smi_last_success_timestamp_seconds"
                            f"{{{CHOSEN}}})",
                            "{{node}}",
                        )
                    ],
                    SECONDS,
                ),
                curves(
                    "Time of a scrape",
                    "Seconds that the collectors take, the slowest exporter by collector.",
                    [
                        Query(
                            "max by (collector) (npu_fallback_exporter_collector_duration_seconds"
                            f"{{{CHOSEN}}})",
                            "{{collector}}",
                        )
                    ],
                    SECONDS,
                ),
                curves(
                    "Memory of the exporters",
                    "Resident memory of each exporter.",
                    [
                        Query(
                            'process_resident_memory_bytes{job=~"npu-fallback-exporter(-node)?",'
                            f"{CHOSEN}}}",
                            "{{pod}}",
                        )
                    ],
                    BYTES,
                ),
            ],
        ),
    ],
)


def _of(side: str) -> str:
    return f'{CHOSEN},revision="${side}"'


def _fallbacks_per_operator(side: str) -> str:
    return (
        f"sum(rate(npu_fallback_kind_events_total{{{_of(side)}}}[5m]))"
        f" / sum(rate(npu_operators_total{{{_of(side)}}}[5m]))"
    )


def _time_in_fallbacks(side: str) -> str:
    return (
        f"(sum(rate(npu_fallback_host_seconds_total{{{_of(side)}}}[5m])) or vector(0))"
        f" / sum(rate(npu_fallback_armed_seconds_total{{{_of(side)}}}[5m]))"
    )


def _numbers(side: str) -> list[Panel]:
    return [
        number(
            f"{side.capitalize()}: fallbacks per operator",
            f"Share of all operators of revision ${side} that fell back.",
            _fallbacks_per_operator(side),
            SHARE,
            Limits(look=0.0005, bad=0.001),
        ),
        number(
            f"{side.capitalize()}: time in fallbacks",
            f"Share of the time of the processes of revision ${side} in operators on the host.",
            _time_in_fallbacks(side),
            SHARE,
            Limits(look=0.05, bad=0.2),
        ),
    ]


def _course(side: str) -> Panel:
    return curves(
        f"{side.capitalize()}: fallbacks by operator",
        f"Events per second of revision ${side}, for each of its operators per second: so that a "
        "canary with little traffic compares.",
        [
            Query(
                f"sum by (op) (rate(npu_fallback_events_total{{{_of(side)}}}[5m]))"
                f" / scalar(sum(rate(npu_operators_total{{{_of(side)}}}[5m])))",
                "{{op}}",
            )
        ],
        SHARE,
        stacked=True,
    )


CANARY = Row(
    "Canary",
    [
        Line(4, [*_numbers("baseline"), *_numbers("candidate")]),
        Line(
            8,
            [
                _course("baseline"),
                _course("candidate"),
                ranking(
                    "New in the candidate",
                    "Operators that fall back in the candidate and in no pod of the baseline, with "
                    "their events since the pods were started. Empty is good.",
                    [
                        (
                            Query(
                                "sum by (op, kind) (npu_fallback_events_total"
                                f"{{{_of('candidate')}}}) > 0 unless on (op) "
                                f"npu_fallback_events_total{{{_of('baseline')}}} > 0",
                                "events",
                            ),
                            NUMBER,
                        )
                    ],
                    keys=("op", "kind"),
                ),
            ],
        ),
    ],
)
