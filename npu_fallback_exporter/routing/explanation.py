"""What is known of an operator: how it is routed, since when, who calls it, what helps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..op_names import globs
from .difference import HOST_ROUTES
from .history import history
from .names import python_names, resolve
from .remedies import Kind, Remedy, remedy_for
from .table import Entry, Route, RoutingTable

#: The label ``kind`` of the metrics, by route; other routes cause no events.
KINDS = {Route.FALLBACK: "dispatcher", Route.EXPLICIT: "explicit_kernel"}


@dataclass(frozen=True)
class OperatorExplanation:
    """One overload.

    Attributes:
        entry: its row in the table.
        registered_at: of an operator in a live dispatcher, where its NPU kernel was registered.
        leads_to: of a composite operator, rows that it is known or likely to end in.
        python: what reaches it from Python.
        versions: versions of torch_npu by route, None: not defined; empty for other packages.
        remedy: None where nothing is known, or where it does not compute on the host, unless other
            versions do.
    """

    entry: Entry
    registered_at: str | None
    leads_to: tuple[Entry, ...]
    python: tuple[str, ...]
    versions: Mapping[Route | None, tuple[str, ...]]
    remedy: Remedy | None

    @property
    def computes_on_host(self) -> bool:
        """Whether calls end on the host, or may, directly or through what it leads to."""
        return any(e.route in HOST_ROUTES for e in (self.entry, *self.leads_to))


@dataclass(frozen=True)
class Explanation:
    """What a name stands for in one table.

    Attributes:
        asked: the name as it was given.
        table: that it was looked up in.
        operators: its overloads, those that compute on the host first.
    """

    asked: str
    table: RoutingTable
    operators: tuple[OperatorExplanation, ...]


def explain(name: str, table: RoutingTable) -> Explanation:
    """Explain an operator, or all overloads that a name stands for.

    Args:
        name: see :func:`~.names.resolve`.
        table: of a version, or of this process.

    Raises:
        UnknownNameError: the name stands for nothing.
    """
    operators = [_operator(entry, table) for entry in resolve(name, table)]
    operators.sort(key=_importance)
    return Explanation(name, table, tuple(operators))


def _importance(operator: OperatorExplanation) -> tuple[int, str]:
    itself = operator.entry.route in HOST_ROUTES
    return 2 - operator.computes_on_host - itself, operator.entry.op


def _operator(entry: Entry, table: RoutingTable) -> OperatorExplanation:
    leads_to = tuple(_leads_to(entry.op, table)) if entry.route is Route.COMPOSITE else ()
    return OperatorExplanation(
        entry,
        _registered_at(entry, table),
        leads_to,
        python_names(entry.op),
        history(entry.op),
        _remedy(entry, leads_to),
    )


def _remedy(entry: Entry, leads_to: Iterable[Entry]) -> Remedy | None:
    on_host = [e.op for e in (entry, *leads_to) if e.route in HOST_ROUTES]
    found = next(filter(None, map(remedy_for, on_host)), None)
    if found or entry.route is not Route.NPU_KERNEL:
        return found
    # Who asks about an operator that has a kernel here may have met it in a version without.
    remedy = remedy_for(entry.op)
    return remedy if remedy and remedy.kind is Kind.VERSION else None


def _leads_to(op: str, table: RoutingTable) -> Iterable[Entry]:
    """Return the rows that a composite operator ends in, judged by names.

    A functional or in-place operator that has a form with an output tensor is computed by it; a
    Python-facing operator of another name, such as ``aten::linalg_inv``, by what it stands for.
    """
    operator, _, overload = op.partition(".")
    base = operator if operator.endswith("__") else operator.removesuffix("_")
    outs = (f"{base}.{overload}_out", f"{base}.{overload}") if overload else (f"{base}.out",)
    exact = [table.entries[out] for out in outs if out != op and out in table.entries]
    ends = [entry for entry in exact if entry.route is not Route.COMPOSITE]
    return ends or _related(op, base, table)


def _related(op: str, base: str, table: RoutingTable) -> Iterable[Entry]:
    python = (name for name in python_names(op) if name.startswith("torch."))
    wanted = {glob for name in python for glob in globs(name)} | {f"{base}.*"}
    return (
        entry
        for entry in table.entries.values()
        if entry.route in HOST_ROUTES
        and entry.op != op
        and any(fnmatchcase(entry.op, glob) for glob in wanted)
    )


def _registered_at(entry: Entry, table: RoutingTable) -> str | None:
    if not table.live or entry.op not in table.entries:
        return None
    from .dump import registered_at

    return registered_at(entry.op)
