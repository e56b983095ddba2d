"""How one operator was routed by all versions of torch_npu that the package has tables of."""

from __future__ import annotations

from collections.abc import Mapping

from .table import Route, load, packages, versions


def history(op: str) -> Mapping[Route | None, tuple[str, ...]]:
    """Return the versions by route, None for those that do not define the operator.

    Versions are in order of number, which is no order in time: torch_npu is released in two lines,
    and a kernel of one may be missing in a higher number of the other.
    """
    if op in packages():
        return {}
    found: dict[Route | None, tuple[str, ...]] = {}
    for version in versions():
        entry = load(version).entries.get(op)
        route = entry.route if entry else None
        found[route] = (*found.get(route, ()), version)
    return found
