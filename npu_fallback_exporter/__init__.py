"""Makes operators that silently run on the host CPU visible, countable and stoppable.

Importing this package imports neither torch nor prometheus_client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npu_fallback_exporter.errors import ArmError, ConfigError, NpuFallbackError
    from npu_fallback_exporter.instrument.arming import install, is_armed, uninstall
    from npu_fallback_exporter.instrument.policy import forbid_fallback, set_mode, set_op_policy
    from npu_fallback_exporter.instrument.stats import FallbackStats, OpStats, get_fallback_stats
    from npu_fallback_exporter.pages.notes import CallSite, Place

__version__ = "0.1.0"

__all__ = [
    "ArmError",
    "CallSite",
    "ConfigError",
    "FallbackStats",
    "NpuFallbackError",
    "OpStats",
    "Place",
    "__version__",
    "forbid_fallback",
    "get_fallback_stats",
    "install",
    "is_armed",
    "set_mode",
    "set_op_policy",
    "uninstall",
]

_HOME = {
    "ArmError": "errors",
    "CallSite": "pages.notes",
    "ConfigError": "errors",
    "FallbackStats": "instrument.stats",
    "NpuFallbackError": "errors",
    "OpStats": "instrument.stats",
    "Place": "pages.notes",
    "forbid_fallback": "instrument.policy",
    "get_fallback_stats": "instrument.stats",
    "install": "instrument.arming",
    "is_armed": "instrument.arming",
    "set_mode": "instrument.policy",
    "set_op_policy": "instrument.policy",
    "uninstall": "instrument.arming",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
