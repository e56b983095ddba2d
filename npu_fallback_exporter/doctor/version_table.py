"""Which PyTorch and which CANN the torch_npu project states for a version of torch_npu."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path(__file__).with_name("torch_npu_versions.tsv")
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+)*")


@dataclass(frozen=True)
class Stated:
    """One row: what a version of torch_npu is made for; ``cann`` may hold an X for any number."""

    torch_npu: str
    torch: str
    cann: str

    def fits_cann(self, version: str) -> bool:
        """Whether that CANN is the stated one; ``9.1.X`` is every 9.1."""
        pattern = re.escape(self.cann.upper()).replace("X", r"[0-9]+")
        return re.fullmatch(pattern, version.strip().upper()) is not None


@functools.cache
def stated() -> dict[str, Stated]:
    """Return the rows by version of torch_npu."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    rows = (Stated(*line.split("\t")) for line in lines if line and not line.startswith("#"))
    return {row.torch_npu: row for row in rows}


def public(version: str) -> str:
    """Return a version without its local part: ``2.13.0+cpu`` is ``2.13.0``."""
    return version.split("+")[0]


def torch_for(torch_npu: str) -> str:
    """Return the PyTorch that a version of torch_npu is made for.

    From the table, or else from the rule by which torch_npu names its packages: the version of
    PyTorch, then ``.postN`` or ``rcN``.
    """
    row = stated().get(public(torch_npu))
    if row is not None:
        return row.torch
    match = _RELEASE.match(public(torch_npu))
    return match[0] if match else ""
