"""``python -m npu_fallback_exporter.metrics`` prints the text of ``docs/metrics.md``."""

from __future__ import annotations

import sys

from .docs import render

sys.stdout.write(render())
