"""Loading the boundary library in a process that was started without it."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from npu_fallback_exporter.instrument.hook_path import find_boundary


def load_early(preferred: Path | None) -> None:
    """Put the boundary library before torch_npu in the global scope, if there still is time.

    Functions that torch_npu imports are found in it then, but not those that it looks up in CANN
    by name: coverage is partial. Full coverage takes ``LD_PRELOAD``, as ``run`` sets it. Where
    the user preloads something, nothing is done: torch_npu then looks everything up in the global
    scope, where it must not meet a function that its CANN does not have.

    Args:
        preferred: folder of prebuilt hooks; ``None`` for the usual places.
    """
    if os.environ.get("LD_PRELOAD") or "torch_npu" in sys.modules:
        return
    path = find_boundary(preferred)
    if path is not None:
        import ctypes

        with contextlib.suppress(OSError):  # hook_info says that the boundary is not watched
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
