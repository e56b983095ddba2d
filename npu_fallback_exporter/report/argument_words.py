"""Recorded arguments in words, on one line: ``self float32[2, 3], correction=0.5``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..pages.notes import Argument, printable

_LONGEST = 240
_LONGEST_VALUE = 80


def in_words(arguments: Iterable[Argument]) -> str:
    """Return all of them, cut where they are many."""
    text = ", ".join(_argument(one) for one in arguments)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _argument(argument: Argument) -> str:
    words = _value(argument.value)
    is_tensor = isinstance(argument.value, dict) and "tensor" in argument.value
    return f"{argument.name} {words}" if is_tensor else f"{argument.name}={words}"


def _value(value: object) -> str:
    match value:
        case {"tensor": list(sizes), "dtype": str(dtype), **rest}:
            where = "" if rest.get("device") == "npu" else " on the host"
            return printable(f"{dtype}{sizes}{where}")
        case {"list": list(items), **rest}:
            more = f", {rest['more']} more" if "more" in rest else ""
            return f"[{', '.join(map(_value, items))}{more}]"
        case {"dtype": text} | {"device": text} | {"float": text}:
            return printable(str(text))
        case _:
            return printable(json.dumps(value))[:_LONGEST_VALUE]
