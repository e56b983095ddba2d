"""What can go wrong in the demo."""

from __future__ import annotations

from npu_fallback_exporter.errors import NpuFallbackError


class DemoError(NpuFallbackError):
    """The demo cannot go on."""
