"""Who calls the device: the program, and nobody on its behalf."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.child import child_environment
from tests.support.exporter_process import Exporter, serving

pytestmark = pytest.mark.usefixtures("hook_is_built")

#: Does the same work twice, the second time armed, and prints what the runtime was asked for.
WORK = """
import json, sys, torch, torch_npu
import npu_fallback_exporter as nfe
from tests.cann_sim import Ledger

def work(steps):
    x = torch.ones(16, 16).npu()
    for _ in range(steps):
        x = torch.fmax(x @ x, x) / 16
        x.sum().item()
        torch.var(x, 1, correction=0.5)
        torch.nonzero(x).cpu()
    torch.npu.synchronize()

def calls(steps):
    before = ledger.functions()
    work(steps)
    after = ledger.functions()
    return {name: count - before.get(name, 0) for name, count in after.items()}

ledger = Ledger()
work(3)
bare = calls(300)
nfe.install("warn")
print("armed", flush=True)
armed = calls(300)
print(json.dumps({"bare": bare, "armed": armed}))
"""


def scrape_until(stop: threading.Event, exporter: Exporter, texts: list[str]) -> None:
    """Scrape at 50 Hz until ``stop``; at most 20 seconds."""
    for _ in range(1000):
        texts.append(exporter.scrape()[0])
        if stop.wait(0.02):
            return


def test_neither_scrapes_nor_the_hook_call_the_device_runtime(tmp_path: Path) -> None:
    stop = threading.Event()
    texts: list[str] = []
    command = [sys.executable, "-c", WORK]
    env = child_environment({"NPU_FALLBACK_DIR": str(tmp_path)})
    with (
        serving(pages=tmp_path) as exporter,
        subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child,
    ):
        assert child.stdout is not None
        assert any(line == "armed\n" for line in child.stdout)
        scraper = threading.Thread(target=scrape_until, args=(stop, exporter, texts))
        scraper.start()
        last = child.stdout.read()
        stop.set()
        scraper.join()
        maps = Path(f"/proc/{exporter.process.pid}/maps").read_text()
    assert child.returncode == 0
    calls = json.loads(last)
    assert sum(calls["bare"].values()) > 1000
    assert calls["armed"] == calls["bare"]
    assert 'op="aten::fmax.out"' in texts[-1]
    assert "ascend" not in maps
    assert "torch" not in maps
