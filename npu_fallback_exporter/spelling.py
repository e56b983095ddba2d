"""The nearest names to one that was mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3
_CUTOFF = 0.6


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the known names, nearest first, regardless of case."""
    by_lower: dict[str, str] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), candidate)
    near = difflib.get_close_matches(name.lower(), by_lower, _MOST, _CUTOFF)
    return [by_lower[candidate] for candidate in near]


def hint(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean A or B?``, or nothing when no known name is near."""
    near = nearest(name, known)
    return f"did you mean {' or '.join(near)}?" if near else ""
