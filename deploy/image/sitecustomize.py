"""Python runs this when it starts, because its folder stands first in PYTHONPATH.

Files ``.pth`` are read in site-packages only, so this does what ``npu_fallback_exporter.pth`` does
where the package is installed. A sitecustomize of the server's own, which this one hides, runs too.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path


def _run_hidden() -> None:
    here = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder).resolve() != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _arm() -> None:
    if os.environ.get("NPU_FALLBACK_HOOK", "0") != "0" or os.environ.get("NPU_FALLBACK_MODE"):
        from npu_fallback_exporter.instrument.autoload import on_startup

        on_startup()


try:
    _arm()
finally:
    _run_hidden()
