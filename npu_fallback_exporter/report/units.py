"""Numbers for people."""

from __future__ import annotations

import math
from datetime import datetime, timezone

_KIBI = 1024.0
_SHORT_TIMES = ((1.0, 1.0, "s", 2), (1e-4, 1e3, "ms", 1), (0.0, 1e6, "µs", 1))
_LONG_TIMES = ((86400.0, "d"), (3600.0, "h"), (120.0, "min"))
_NONE = "–"


def count(number: float | None) -> str:
    """Return a whole number with its thousands apart."""
    return _NONE if number is None else f"{number:,.0f}"


def size(number: float | None) -> str:
    """Return a number of bytes."""
    if number is None:
        return _NONE
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < _KIBI:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= _KIBI
    return f"{value:.1f} TiB"


def duration(seconds: float | None) -> str:
    """Return a time."""
    if seconds is None:
        return _NONE
    if seconds == 0:
        return "0 s"
    for least, unit in _LONG_TIMES:
        if seconds >= least:
            return f"{seconds / (60.0 if unit == 'min' else least):.1f} {unit}"
    least, factor, unit, digits = next(row for row in _SHORT_TIMES if seconds >= row[0])
    return f"{seconds * factor:.{digits}f} {unit}"


def share(ratio: float | None) -> str:
    """Return a part of a whole in percent."""
    if ratio is None:
        return _NONE
    return "<0.1%" if 0 < ratio < 0.0005 else f"{ratio:.1%}"


def rate(number: float | None) -> str:
    """Return a rate with three digits that count."""
    if number is None:
        return _NONE
    if number == 0 or abs(number) >= 100:
        return f"{number:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(number))))
    return f"{number:.{min(digits, 6)}f}"


def times(ratio: float) -> str:
    """Return how many times as much: ×0.5, ×12."""
    return f"×{rate(ratio)}" if math.isfinite(ratio) else "new"


def moment(unix: float | None) -> str:
    """Return a time of day, in UTC."""
    if unix is None:
        return "an unknown time"
    return f"{datetime.fromtimestamp(unix, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
