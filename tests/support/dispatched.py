"""Which operators reached the NPU's dispatch key, told by PyTorch's profiler on the device.

The profiler sees the whole tree of calls. Below a composite operator its parts are taken; what an
NPU kernel or the fallback calls in turn is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from npu_fallback_exporter.routing.table import Route, RoutingTable


def dispatched(work: Callable[[], object], table: RoutingTable) -> Counter[str]:
    """Run `work` and return how often each operator reached the key, views left out."""
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with torch.autograd.profiler.profile(use_kineto=True, experimental_config=config) as profile:
        work()
    counts: Counter[str] = Counter()
    for event in profile.function_events:
        if event.cpu_parent is None:
            _visit(event, table, counts)
    return counts


#: The profiler does not tell the device: programs make numbers on the host with these, too.
_ON_THE_HOST_TOO = ("aten::empty.memory_format", "aten::_to_copy", "aten::_local_scalar_dense")


def without_host_and_views(counts: dict[str, int]) -> Counter[str]:
    """Leave out operators that neither compute nor copy, and those that the host runs as well."""
    return Counter(
        {
            op: count
            for op, count in counts.items()
            if op not in _ON_THE_HOST_TOO and not _is_view(op)
        }
    )


def _visit(event: Any, table: RoutingTable, counts: Counter[str]) -> None:
    name = event.name
    if event.overload_name:
        name = f"{name}.{event.overload_name}"
    if "::" not in name or table.route_of(name) is Route.COMPOSITE:
        parts = event.cpu_children
    else:
        if not _is_view(name):
            counts[name] += 1
        parts = ()
    for part in parts:
        _visit(part, table, counts)


def _is_view(op: str) -> bool:
    base, _, overload = op.partition(".")
    namespace, _, name = base.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    func = getattr(packet, overload or "default", None)
    return func is not None and bool(func.is_view)
