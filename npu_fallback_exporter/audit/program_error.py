"""A program that raised under the audit, in one line with the place."""

from __future__ import annotations

import traceback
from pathlib import Path

from .errors import AuditError

_LONGEST = 300
_OWN = str(Path(__file__).parent)


def program_error(who: str, error: BaseException) -> AuditError:
    """Return the error that says what `who` raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_theirs(frame.filename)]
    place = f" at {theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""
    text = " ".join(str(error).split())
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}..."
    return AuditError(
        f"{who} raised {type(error).__name__}{place}: {text or 'without a word'}",
        "it must run with these inputs on a CPU, and may not look into the memory of tensors",
    )


def _is_theirs(file: str) -> bool:
    return not file.startswith((_OWN, "<")) and "/site-packages/torch/" not in file
