"""``python -m npu_fallback_exporter`` is the command ``npu-fallback-exporter``."""

from __future__ import annotations

import sys

from .cli.main import main

sys.exit(main())
