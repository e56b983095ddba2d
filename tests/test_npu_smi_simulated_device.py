"""A real server on the simulated device, a stand-in npu-smi and a real Prometheus, joined."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import npu_smi_samples as samples
from tests.support.exporter_process import serving, wait_until
from tests.support.npu_smi_standin import Reply, StandIn
from tests.support.private_dev import needs_private_dev, with_only_chip
from tests.support.prometheus_process import answer, needs_prometheus, prometheus

pytestmark = [
    pytest.mark.timeout(300),
    needs_prometheus,
    pytest.mark.skipif(
        importlib.util.find_spec("torch_npu") is None, reason="no torch_npu in this environment"
    ),
    needs_private_dev,
]

_SERVER = """
import sys
import torch
import torch_npu
import npu_fallback_exporter as nfe

assert nfe.install("observe")
x, y = torch.ones(2, 3).npu(), torch.zeros(2, 3).npu()
print("ready", flush=True)
for _ in sys.stdin:
    for _ in range(10):
        torch.fmax(x, y)
    print("done", flush=True)
"""


@contextmanager
def server(folder: Path, pages: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that makes ten fallbacks for each line that it is sent."""
    from tests.cann_sim import build, environment

    command = with_only_chip(5, folder, [sys.executable, "-c", _SERVER])
    env = environment(build()) | {"NPU_FALLBACK_DIR": str(pages)}
    process = subprocess.Popen(
        command,
        env=env,
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    """Read lines until ``word``; torch_npu prints some of its own before."""
    assert process.stdout is not None
    for line in process.stdout:
        if line == f"{word}\n":
            return
    raise AssertionError(f"the server ended before it said {word}")


def test_fallbacks_and_utilization_of_a_real_server_join_on_its_chip(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    info = samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt")
    stand_in.reply({"info": Reply(info)}, Reply("This device does not support querying this.\n"))
    pages = tmp_path / "pages"
    pages.mkdir()
    flags = ("--npu-smi", str(stand_in.path), "--npu-smi-interval", "0.5")
    with (
        server(tmp_path, pages) as process,
        serving(*flags, pages=pages) as exporter,
        prometheus(tmp_path, exporter.url.split("/")[2]) as address,
    ):
        wait_for(process, "ready")
        joined: dict[str, float] = {}

        def fall_back_and_ask() -> bool:
            nonlocal joined
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            wait_for(process, "done")
            joined = answer(
                address,
                "sum by (npu) (rate(npu_fallback_kind_events_total[20s]))"
                " * on (npu) group_left () npu_aicore_utilization_ratio",
            )
            return joined.get("5", 0) > 0

        wait_until(fall_back_and_ask, 120, "no joined sample")
        assert set(joined) == {"5"}
        # npu-smi lists the chip that the page decided: nothing contradicts.
        labels = {"collector": "npu_mapping"}
        assert exporter.value("npu_fallback_exporter_collector_success", **labels) == 1
        assert (exporter.value("npu_server_resident_memory_bytes") or 0) > 0
