"""The routing tables that the package carries: one text file per version of torch_npu."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.resources import files

from .errors import TableError, UnknownNameError

_PREFIX, _SUFFIX = "torch_npu-", ".tsv"


class Route(Enum):
    """Where a call of an operator on NPU tensors ends."""

    NPU_KERNEL = "npu"  # a kernel registered for the NPU
    COMPOSITE = "composite"  # made of other operators, each with a route of its own
    FALLBACK = "fallback"  # the backend fallback, which calls the CPU kernel
    EXPLICIT = "explicit"  # an NPU kernel that computes on the host under a condition
    UNSUPPORTED = "unsupported"  # the backend fallback finds no CPU kernel: warns, then raises


@dataclass(frozen=True)
class Entry:
    """One row of a table.

    Attributes:
        op: full overload name, as in ``aten::fmax.out``.
        route: where its calls end.
        condition: under which it computes on the host; None where its route says all. Operators
            that end in the fallback have one if tensors of other layouts have an NPU kernel.
    """

    op: str
    route: Route
    condition: str | None = None


@dataclass(frozen=True)
class RoutingTable:
    """The routes of all operators that one version of torch_npu, with its PyTorch, defines.

    Attributes:
        version: of torch_npu.
        soc: the chip that the dispatcher was read for; routes do not depend on it, conditions do.
        entries: by full overload name.
        torch_version: of PyTorch.
        live: read from the dispatcher of this process, not from a file of the package.
    """

    version: str
    soc: str
    entries: Mapping[str, Entry] = field(repr=False)
    torch_version: str = ""
    live: bool = False

    def entry_of(self, op: str) -> Entry | None:
        """Return the row of an overload, None when neither this version nor a known package has it.

        Packages such as torchvision define operators of their own, for which torch_npu has nothing.
        """
        return self.entries.get(op) or packages().get(op)

    def route_of(self, op: str) -> Route | None:
        """Return the route of an overload, None when nothing is known of it."""
        entry = self.entry_of(op)
        return entry.route if entry else None

    def counts(self) -> Mapping[Route, int]:
        """Return how many operators take each route."""
        counted = Counter(entry.route for entry in self.entries.values())
        return {route: counted[route] for route in Route}


def versions() -> list[str]:
    """Return the versions of torch_npu that the package has a table of, in order of number."""
    names = (item.name for item in files(__package__).joinpath("tables").iterdir())
    found = (
        name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        for name in names
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX)
    )
    return sorted(found, key=_numbers)


@cache
def load(version: str) -> RoutingTable:
    """Return the table of a version, such as ``2.13.0``.

    Raises:
        UnknownNameError: the package has none.
    """
    known = versions()
    if version not in known:
        near = [name for name in known if version and name.startswith(version)]
        near = near or difflib.get_close_matches(version, known, n=3, cutoff=0.5) or known
        raise UnknownNameError(
            f"there is no routing table of torch_npu {version!r}", f"use {' or '.join(near)}"
        )
    name = f"{_PREFIX}{version}{_SUFFIX}"
    text = files(__package__).joinpath("tables", name).read_text(encoding="utf-8")
    return parse(text, name)


@cache
def packages() -> Mapping[str, Entry]:
    """Return operators of other packages, as they are routed with torch_npu alone."""
    name = "packages.tsv"
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    rows = enumerate(text.splitlines(), 1)
    return of_entries(
        _entry(row, f"{name}, line {n}") for n, row in rows if not row.startswith("#")
    )


def newest() -> RoutingTable:
    """Return the table of the newest version."""
    return load(versions()[-1])


def parse(text: str, name: str) -> RoutingTable:
    """Return the table that a text holds.

    Args:
        text: header lines ``# key: value``, then ``op <tab> route [<tab> condition]``.
        name: of the file, for the error.

    Raises:
        TableError: it holds none.
    """
    header: dict[str, str] = {}
    entries: dict[str, Entry] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            key, _, value = line.lstrip("# ").partition(":")
            header[key] = value.strip()
        elif line:
            entry = _entry(line, f"{name}, line {number}")
            entries[entry.op] = entry
    if "torch_npu" not in header or not entries:
        raise TableError(f"{name} is no routing table", "make one with audit --dump-table FILE")
    return RoutingTable(
        header["torch_npu"], header.get("soc", ""), entries, header.get("torch", "")
    )


def render(table: RoutingTable) -> str:
    """Return the text of a table, sorted by operator, as :func:`parse` reads it."""
    lines = [
        f"# torch_npu: {table.version}",
        f"# torch: {table.torch_version}",
        f"# soc: {table.soc}",
    ]
    lines += (_line(table.entries[op]) for op in sorted(table.entries))
    return "\n".join(lines) + "\n"


def of_entries(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return entries by operator, sorted."""
    return {entry.op: entry for entry in sorted(entries, key=lambda entry: entry.op)}


def _entry(line: str, where: str) -> Entry:
    op, *rest = line.split("\t")
    try:
        route = Route(rest[0])
    except (IndexError, ValueError):
        raise TableError(
            f"{where}: {line!r} gives no route",
            f"write OP, a tab, and one of {', '.join(route.value for route in Route)}",
        ) from None
    return Entry(op, route, rest[1] if len(rest) > 1 else None)


def _line(entry: Entry) -> str:
    return "\t".join(filter(None, (entry.op, entry.route.value, entry.condition)))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(
        int(part.removeprefix("post")) if part.removeprefix("post").isdigit() else 0
        for part in version.split(".")
    )
