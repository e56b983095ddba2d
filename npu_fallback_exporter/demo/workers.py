"""The processes of the demo: two workers of the server, and the exporter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npu_fallback_exporter.demo.errors import DemoError
from npu_fallback_exporter.launch.children import start_bound, stop

_START_SECONDS = 180.0
_LOOK_SECONDS = 0.05
_WORKER_READY = re.compile(r"ready on port ([0-9]+)")
_EXPORTER_READY = re.compile(r"listening on http://127\.0\.0\.1:([0-9]+)/metrics")
_LONGEST_EXCUSE = 300

#: What a user may have set for other servers; the demo is about fallbacks that happen.
_NOT_FOR_THE_DEMO = (
    "NPU_FALLBACK_ALLOW",
    "NPU_FALLBACK_GROUP",
    "NPU_FALLBACK_MAX_OPS",
    "TORCH_NPU_FALLBACK_CPU_DISABLE",
    "TORCH_NPU_CPU_FALLBACK",
    "ASCEND_OPP_DISABLE_FALLBACK",
)


@dataclass(frozen=True)
class Service:
    """A process that answers on a port of this machine.

    Attributes:
        name: for people.
        log: its output.
        process: its handle.
        port: on which it answers; 0 until it does.
    """

    name: str
    log: Path
    process: subprocess.Popen[str]
    port: int = 0

    def failure(self, what: str) -> DemoError:
        """Return the error that says what went wrong, with the last thing it said itself."""
        lines = self.log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
        return DemoError(
            f"the {self.name} {what} ({lines[-1].strip()[:_LONGEST_EXCUSE]})",
            f"see {self.log}",
        )


class Processes:
    """Starts what the demo needs, and ends all of it: use it in a ``with`` block.

    Args:
        logs: folder for what the processes say.
        pages: folder for the pages of the workers.
    """

    def __init__(self, logs: Path, pages: Path) -> None:
        self._logs = logs
        self._pages = pages
        self._services: list[Service] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        stop([service.process for service in self._services])

    def start_workers(self, devices: int, environ: Mapping[str, str]) -> list[Service]:
        """Start two workers, on two devices if there are as many, and wait until both serve."""
        armed = {name: value for name, value in environ.items() if name not in _NOT_FOR_THE_DEMO}
        armed |= {
            "NPU_FALLBACK_HOOK": "1",
            "NPU_FALLBACK_MODE": "observe",
            "NPU_FALLBACK_DIR": str(self._pages),
            "OMP_NUM_THREADS": "1",  # the workers share this machine with their clients
        }
        program = [sys.executable, "-m", "npu_fallback_exporter.demo.server"]
        started = [
            self._start(f"worker {rank}", [*program, "--device", str(rank % devices)], armed)
            for rank in range(2)
        ]
        return [self._until_ready(service, _WORKER_READY) for service in started]

    def start_exporter(self, *, npu_smi: bool) -> Service:
        """Start ``serve`` on a free port, with or without npu-smi; wait until it listens."""
        program = [sys.executable, "-m", "npu_fallback_exporter", "serve"]
        flags = ["--web.listen-address", "127.0.0.1:0", "--pages", str(self._pages)]
        if not npu_smi:
            flags.append("--no-npu-smi")
        service = self._start("exporter", [*program, *flags], os.environ)
        return self._until_ready(service, _EXPORTER_READY)

    def check(self) -> None:
        """Raise :class:`DemoError` if one of them has ended."""
        for service in self._services:
            if service.process.poll() is not None:
                raise service.failure(f"ended with status {service.process.returncode}")

    def _start(self, name: str, command: list[str], environ: Mapping[str, str]) -> Service:
        log = self._logs / f"{name.replace(' ', '-')}.log"
        with log.open("w") as output:
            process = start_bound(command, environ, stdout=output, stderr=output)
        service = Service(name, log, process)
        self._services.append(service)
        return service

    def _until_ready(self, service: Service, says: re.Pattern[str]) -> Service:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            self.check()
            match = says.search(service.log.read_text(errors="replace"))
            if match:
                return Service(service.name, service.log, service.process, int(match[1]))
            if time.monotonic() > deadline:
                raise service.failure(f"is not ready after {_START_SECONDS:.0f} s")
            time.sleep(_LOOK_SECONDS)
