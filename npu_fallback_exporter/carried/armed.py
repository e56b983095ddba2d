"""The file ``armed.json``: how long each process with a page was seen armed.

A process that is killed cannot say when it ended; what an exporter has shown of it must not fall
when that exporter starts again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

NAME = "armed.json"
_TOO_LARGE = 1 << 62


def encode(armed_ns: Mapping[str, int]) -> bytes:
    """Return the contents of the file, from nanoseconds by digest of the process."""
    return json.dumps({"version": 1, "armed_ns": dict(armed_ns)}, separators=(",", ":")).encode()


def decode(data: bytes) -> dict[str, int]:
    """Read the file; what makes no sense is left out, because all of it is a lower bound."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("version") != 1:
        return {}
    armed_ns = content.get("armed_ns")
    if not isinstance(armed_ns, dict):
        return {}
    return {
        digest: number
        for digest, number in armed_ns.items()
        if type(number) is int and 0 <= number < _TOO_LARGE
    }
