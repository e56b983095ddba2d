"""What the NPU's dispatch key would do with an operator.

The table of a torch_npu version decides for the operators that it lists. Operators that it does not
list, a program's own for one, are judged by this process's dispatcher, which knows all of their
kernels except torch_npu's.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..routing.table import Route

if TYPE_CHECKING:
    from ..routing.table import RoutingTable

#: In the order in which the dispatcher takes their kernel for a backend without one of its own.
_COMPOSITE = (
    "CompositeExplicitAutogradNonFunctional",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
)


class Way(enum.Enum):
    """What happens to a call."""

    KERNEL = "kernel"
    COMPOSITE = "composite"
    FALLBACK = "falls back"
    MAY_FALL_BACK = "may fall back"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Decision:
    """What happens to a call of an operator, and when.

    Attributes:
        way: what happens.
        condition: of an explicit kernel, under which it computes on the host; else empty.
        listed: whether the table says so.
        kernel: of a composite operator, the key whose kernel the dispatcher calls.
    """

    way: Way
    condition: str = ""
    listed: bool = True
    kernel: torch._C.DispatchKey | None = None


class Routes:
    """Decides for operators, by full overload name, and remembers."""

    def __init__(self, table: RoutingTable) -> None:
        self._table = table
        self._known: dict[str, Decision] = {}

    def of(self, func: Any) -> Decision:  # noqa: ANN401 - torch._ops.OpOverload
        """Return what happens to a call of `func` with a tensor on the NPU."""
        name = func.name()
        decision = self._known.get(name)
        if decision is None:
            decision = self._known[name] = self._decide(name, func)
        return decision

    def _decide(self, name: str, func: Any) -> Decision:  # noqa: ANN401 - OpOverload
        entry = self._table.entries.get(name)
        composite = _composite_key(name)
        way = _way_of_unlisted(name) if entry is None else _WAYS[entry.route]
        if way is Way.COMPOSITE and composite is None:
            # This PyTorch is not the table's, and makes no composite of it.
            entry, way = None, _way_of_unlisted(name)
        if way is Way.COMPOSITE and func.is_view and not _has(name, "CompositeImplicitAutograd"):
            # A view copies and computes nothing, and some are made without the dispatcher.
            way = Way.KERNEL
        condition = "" if entry is None else entry.condition or ""
        return Decision(way, condition, entry is not None, composite)


_WAYS = {
    Route.NPU_KERNEL: Way.KERNEL,
    Route.COMPOSITE: Way.COMPOSITE,
    Route.FALLBACK: Way.FALLBACK,
    Route.EXPLICIT: Way.MAY_FALL_BACK,
    Route.UNSUPPORTED: Way.UNSUPPORTED,
}


def kernels_of_composites(table: RoutingTable) -> list[str]:
    """Return the operators that torch_npu takes whole and this PyTorch would take apart."""
    return [
        entry.op
        for entry in table.entries.values()
        if _WAYS[entry.route] in {Way.KERNEL, Way.MAY_FALL_BACK}
        and _is_defined(entry.op)
        and _has(entry.op, "CompositeImplicitAutograd")
    ]


def _way_of_unlisted(name: str) -> Way:
    if _has(name, "PrivateUse1"):
        return Way.KERNEL
    if _composite_key(name) is not None:
        return Way.COMPOSITE
    return Way.FALLBACK if _has(name, "CPU") else Way.UNSUPPORTED


def _composite_key(name: str) -> torch._C.DispatchKey | None:
    key = next((key for key in _COMPOSITE if _has(name, key)), None)
    return None if key is None else getattr(torch._C.DispatchKey, key)


def _is_defined(name: str) -> bool:
    base, _, overload = name.partition(".")
    return bool(torch._C._jit_get_schemas_for_operator(base)) and torch._C._dispatch_has_kernel(
        f"{base}.{overload}" if overload else base
    )


def _has(name: str, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))
