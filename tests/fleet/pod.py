"""One pod of the recorded fleet: a real server on the simulated device, and its exporter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cann_sim import build, environment
from tests.support.exporter_process import Exporter, serving
from tests.support.npu_smi_standin import Reply, StandIn
from tests.support.private_dev import with_only_chip

ROOT = Path(__file__).parents[2]

_NPU_SMI = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.5.1                   Version: 25.5.1                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| {chip}     910B3               | OK            | {power:<5}       45                0    / 0             |
| 0                         | 0000:C1:00.0  | {busy:<3}         0    / 0          28445/ 65536         |
+===========================+===============+====================================================+
"""  # noqa: E501 - as npu-smi prints it


@dataclass(frozen=True)
class Place:
    """Where a pod runs, and what it is.

    Attributes:
        name: of the pod.
        revision: of the workload.
        node: its name.
        chip: the physical id of the pod's one NPU.
        mode: ``NPU_FALLBACK_MODE`` of its server.
    """

    name: str
    revision: str
    node: str
    chip: int
    mode: str = "observe"


@dataclass
class Pod:
    """A running pod; ``npu_smi`` is what its exporter calls, if anything."""

    place: Place
    folder: Path
    exporter: Exporter
    npu_smi: StandIn | None

    @property
    def address(self) -> str:
        """Host and port that Prometheus scrapes."""
        return self.exporter.url.split("/")[2]

    def behave(self, phase: str, busy: int) -> None:
        """Set what each request does from now on, and the AI Core percentage that is shown."""
        draft = self.folder / "phase.draft"
        draft.write_text(phase, encoding="utf-8")
        draft.replace(self.folder / "phase")
        if self.npu_smi is not None:
            table = _NPU_SMI.format(chip=self.place.chip, busy=busy, power=90 + 2 * busy)
            unsupported = Reply("This device does not support querying this.\n")
            self.npu_smi.reply({"info": Reply(table)}, unsupported)


@contextmanager
def pod(folder: Path, place: Place, *, with_npu_smi: bool) -> Iterator[Pod]:
    """Run a pod until the block ends."""
    folder.mkdir()
    pages = folder / "pages"
    pages.mkdir()
    stand_in = StandIn(folder) if with_npu_smi else None
    flags = ["--no-npu-smi"]
    if stand_in is not None:
        flags = ["--npu-smi", str(stand_in.path), "--npu-smi-interval", "5"]
    with serving(*flags, pages=pages) as exporter:
        running = Pod(place, folder, exporter, stand_in)
        running.behave("healthy", busy=0)
        with _server(running, pages):
            yield running


@contextmanager
def _server(pod: Pod, pages: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.fleet.server", str(pod.folder / "phase")]
    command = with_only_chip(pod.place.chip, pod.folder, command)
    env = os.environ | environment(build())
    env |= {"NPU_FALLBACK_DIR": str(pages), "NPU_FALLBACK_MODE": pod.place.mode}
    env |= {"NPU_FALLBACK_ALLOW": "aten::lgamma*,aten::var*"}
    with (pod.folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield
            assert process.poll() is None, f"the server ended; see {log.name}"
        finally:
            process.kill()
            process.wait()
