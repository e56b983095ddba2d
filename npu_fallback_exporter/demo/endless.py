"""The demo's workers under traffic until SIGTERM: ``python -m npu_fallback_exporter.demo.endless``.

For a container: nothing is printed or compared, and the pages are in ``NPU_FALLBACK_DIR``, for an
exporter elsewhere.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from npu_fallback_exporter.demo.device import find_device
from npu_fallback_exporter.demo.expected import ORIGINAL, REWRITTEN
from npu_fallback_exporter.demo.traffic import Plan, send
from npu_fallback_exporter.demo.workers import Processes
from npu_fallback_exporter.errors import NpuFallbackError

_ROUND = Plan((ORIGINAL, REWRITTEN), new_tokens=16, seconds=60.0)


def main() -> NoReturn:
    """Serve and ask without end; a failure is one line, and ends with status 1."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    pages = Path(os.environ["NPU_FALLBACK_DIR"])
    try:
        device = find_device()
        with (
            tempfile.TemporaryDirectory(prefix="npu-fallback-demo-") as logs,
            Processes(Path(logs), pages) as processes,
        ):
            workers = processes.start_workers(device.count, device.environ)
            while True:
                send(workers, _ROUND, lambda served: None)
    except NpuFallbackError as error:
        sys.exit(f"npu-fallback-exporter: {error}")


if __name__ == "__main__":
    main()
