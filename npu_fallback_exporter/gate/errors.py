"""What can go wrong before there is anything to judge."""

from __future__ import annotations

from ..errors import NpuFallbackError


class SourceError(NpuFallbackError):
    """Prometheus, or a saved scrape, gives no data: there is no verdict."""


class QuestionError(NpuFallbackError):
    """The user asked for something that cannot be: a usage error."""
