"""What can be wrong with a question to the audit; every error is one line with the next step."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import NpuFallbackError
from ..spelling import hint


class AuditError(NpuFallbackError):
    """The question cannot be answered as it was asked: usage, a name, a file, a model."""


def unknown(kind: str, name: str, known: Iterable[str], otherwise: str) -> AuditError:
    """Return the error for a name that nobody knows, with the nearest names.

    Args:
        kind: what it should name, such as ``operator``.
        name: what was given.
        known: what could have been meant.
        otherwise: the next step when nothing is near.
    """
    return AuditError(f"no {kind} {name!r}", hint(name, known) or otherwise)
