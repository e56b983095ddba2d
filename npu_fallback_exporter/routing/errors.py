"""What a user of the routing tables can have got wrong."""

from __future__ import annotations

from ..errors import NpuFallbackError


class UnknownNameError(NpuFallbackError):
    """A name that was given names nothing: a version without a table, or no operator."""


class TableError(NpuFallbackError):
    """A file is no routing table, or no table can be made here."""
