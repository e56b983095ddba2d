"""Which version's table decides."""

from __future__ import annotations

import importlib.metadata

from ..routing import table
from .errors import unknown


def table_of(version: str | None) -> table.RoutingTable:
    """Return the table of a torch_npu version.

    Args:
        version: as in ``2.13.0``; None: the installed one, or else the newest that there is.

    Raises:
        AuditError: there is no table of that version.
    """
    known = table.versions()
    if version is None:
        version = _installed()
        if version not in known:
            version = known[-1]
    if version not in known:
        raise unknown("table of torch_npu", version, known, f"choose one of {', '.join(known)}")
    return table.load(version)


def _installed() -> str:
    try:
        return importlib.metadata.version("torch_npu").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""
