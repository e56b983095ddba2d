"""What to do instead of an operator, from the table of the routing package."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from .model import Remedy

_TABLE = "..routing.remedies"


def remedy_of(op: str) -> Remedy | None:
    """Return the remedy of a full overload name; None: none is known, or there is no table."""
    table = _table()
    found = None if table is None else table.remedy_for(op)
    return None if found is None else Remedy(found.en, found.zh)


@cache
def _table() -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(_TABLE, __package__)
    except ModuleNotFoundError:
        return None
