"""What the gate reads of a scrape, wherever the scrape comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..metrics import MetricSpec, hook


class Counter(NamedTuple):
    """A counter, summed over the labels that the gate does not look at.

    Attributes:
        name: the metric.
        of: the operator, or the reason of a failure to arm; empty: the metric has neither.
    """

    name: str
    of: str = ""


#: Values of one exporter at one moment.
Scrape = Mapping[Counter, float]

#: Metrics that the gate reads, with the label that it keeps.
READ: dict[str, str] = {
    hook.OPERATORS.name: "",
    hook.EVENTS.name: "op",
    hook.BLOCKED.name: "op",
    hook.ERRORS.name: "op",
    hook.KIND_EVENTS.name: "",
    hook.HOST_SECONDS.name: "",
    hook.TRANSFER_BYTES.name: "",
    hook.SYNCS.name: "",
    hook.ARMED_SECONDS.name: "",
    hook.DEVICE_ALLOCATIONS.name: "",
    hook.PROCESSES.name: "",
    hook.PROCESSES_FINISHED.name: "",
    hook.ARM_FAILURES.name: "reason",
}
SPECS: dict[str, MetricSpec] = {spec.name: spec for spec in hook.HOOK_METRICS if spec.name in READ}

OPERATORS = Counter(hook.OPERATORS.name)
EVENTS = Counter(hook.KIND_EVENTS.name)
HOST_SECONDS = Counter(hook.HOST_SECONDS.name)
BYTES = Counter(hook.TRANSFER_BYTES.name)
SYNCS = Counter(hook.SYNCS.name)
ARMED_SECONDS = Counter(hook.ARMED_SECONDS.name)
DEVICE_ALLOCATIONS = Counter(hook.DEVICE_ALLOCATIONS.name)
PROCESSES = Counter(hook.PROCESSES.name)
PROCESSES_FINISHED = Counter(hook.PROCESSES_FINISHED.name)


def counter_of(name: str, labels: Mapping[str, str]) -> Counter:
    """Return the counter that a series of a metric in READ adds to."""
    label = READ[name]
    return Counter(name, labels.get(label, "") if label else "")
