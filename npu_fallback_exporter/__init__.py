"""Makes operators that silently run on the host CPU visible, countable and stoppable.

Importing this package imports neither torch nor prometheus_client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npu_fallback_exporter.instrument.arming import install, is_armed, uninstall
    from npu_fallback_exporter.instrument.stats import FallbackStats, OpStats, get_fallback_stats

__version__ = "0.1.0"

__all__ = [
    "FallbackStats",
    "OpStats",
    "__version__",
    "get_fallback_stats",
    "install",
    "is_armed",
    "uninstall",
]

_HOME = {
    "FallbackStats": "stats",
    "OpStats": "stats",
    "get_fallback_stats": "stats",
    "install": "arming",
    "is_armed": "arming",
    "uninstall": "arming",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.instrument.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
