"""What to do instead of an operator, from the table of the routing package."""

from __future__ import annotations

from functools import lru_cache

from ..routing.remedies import remedy_for
from .model import Remedy


@lru_cache(1024)  # the table is searched glob by glob, and a page asks every few seconds
def remedy_of(op: str) -> Remedy | None:
    """Return the remedy of a full overload name; None: none is known."""
    found = remedy_for(op)
    return None if found is None else Remedy(found.en, found.zh)
