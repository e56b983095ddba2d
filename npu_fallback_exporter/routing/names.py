"""From what a user calls an operator to rows of a table, and back to Python."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from ..op_names import globs
from .errors import UnknownNameError
from .table import Entry, Route, RoutingTable, packages

_NEAREST = 4
_PREFIXES = ("fft", "linalg", "special")  # modules whose name their operators bear


def resolve(name: str, table: RoutingTable) -> tuple[Entry, ...]:
    """Return the rows that a name stands for, sorted by operator.

    Args:
        name: an overload, an operator without overload (all of its overloads), a glob, or a Python
            name such as ``torch.isin``; ``fmax`` and ``nn.functional.gelu`` are understood too.
        table: where to look.

    Raises:
        UnknownNameError: there are none; names the nearest.
    """
    known = {**packages(), **table.entries}
    if name in known:
        return (known[name],)
    for wanted in _readings(name, known):
        found = [op for op in known if any(fnmatchcase(op, glob) for glob in wanted)]
        if found:
            return tuple(known[op] for op in sorted(found))
    near = nearest(name, known)
    raise UnknownNameError(
        f"{name!r} is no operator of torch_npu {table.version} with its PyTorch",
        f"did you mean {' or '.join(near)}?" if near else "name it as in aten::fmax.out",
    )


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that a mistyped one may have meant, the likeliest first."""
    if "::" in name:
        names = {form for op in known for form in (op, op.partition(".")[0])}
    else:
        names = {python for row in _functions().values() for python in row}
        names |= {python.rpartition(".")[2] for python in names if "." not in name}
    return difflib.get_close_matches(name, sorted(names), n=_NEAREST, cutoff=0.7)


def python_names(op: str) -> tuple[str, ...]:
    """Return what reaches an overload from Python, as far as it is known."""
    namespace, _, full = op.partition("::")
    operator = full.partition(".")[0]
    found: list[str] = []
    if namespace == "aten":
        found += _functions().get(operator, ())
    found += (name for glob, names in _callers() if fnmatchcase(op, glob) for name in names)
    return tuple(dict.fromkeys(found))


def _readings(name: str, known: Mapping[str, Entry]) -> Iterator[tuple[str, ...]]:
    """Yield the globs that a name may stand for, the likeliest first."""
    if name.startswith("torch_npu."):
        yield globs(f"npu::{name.rpartition('.')[2]}")
    python = _as_python(name)
    if python:
        *_, module, function = python.split(".")
        own = f"aten::{module}_{function}" if module in _PREFIXES else f"aten::{function}"
        # torch.inverse could be short for linalg_inv_ex, had torch_npu no kernel for aten::inverse.
        if own in known and known[own].route is not Route.COMPOSITE:
            yield globs(own)
        yield globs(python)
    yield globs(name)
    if "::" not in name:
        yield globs(f"aten::{name}")
        yield globs(f"npu::{name}")


def _as_python(name: str) -> str | None:
    if "::" in name:
        return None
    return name if name.startswith(("torch.", "torchvision.")) else f"torch.{name}"


@cache
def _functions() -> Mapping[str, tuple[str, ...]]:
    return {operator: tuple(names.split()) for operator, names in _rows("python_names.tsv")}


@cache
def _callers() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((glob, tuple(names.split("; "))) for glob, names in _rows("callers.tsv"))


def _rows(name: str) -> Iterator[tuple[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            key, _, value = line.partition("\t")
            yield key, value
