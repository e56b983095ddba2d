"""Reports on real pages, written by hooked servers on the simulated device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npu_fallback_exporter.report.sources import report_from, report_from_folders
from tests.cann_sim import Ledger
from tests.support.child import run_python
from tests.support.chromium import chromium
from tests.support.exporter_process import serving, values_of
from tests.support.web import get

pytestmark = pytest.mark.usefixtures("hook_is_built")

PROGRAM = """\
import torch
import torch_npu

x, y = torch.ones(64, 32).npu(), torch.zeros(64, 32).npu()
mask = x > 0


def forward():
    return torch.fmax(x, y)


for _ in range(50):
    forward()
for _ in range(7):
    torch.lgamma(x)
torch.var(x, 1, correction=0.5)
x[mask]
x.sum().item()
"""
EVENTS = {"aten::fmax.out": 100, "aten::lgamma.out": 14, "aten::var.correction": 2}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the pages of two servers that have done the same and ended."""
    folder = tmp_path_factory.mktemp("pages")
    program = folder / "server.py"
    program.write_text(PROGRAM)
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    for _ in range(2):
        done = run_python(code, {"NPU_FALLBACK_DIR": str(folder), "NPU_FALLBACK_MODE": "observe"})
        assert done.returncode == 0, done.stderr
    return folder


def test_a_report_on_real_pages_is_exact_and_names_the_line(pages: Path, ledger: Ledger) -> None:
    assert ledger is not None
    report = report_from_folders([pages])
    assert {op.op: op.events for op in report.ops} == EVENTS
    fmax = next(op for op in report.ops if op.op == "aten::fmax.out")
    size = 64 * 32 * 4
    # Both arguments and the result that is written to go to the host, which comes back.
    assert (fmax.bytes_d2h, fmax.bytes_h2d) == (100 * 3 * size, 100 * size)
    assert sum(fmax.buckets) == 100
    assert fmax.call is not None
    line = PROGRAM.splitlines().index("    return torch.fmax(x, y)") + 1
    assert fmax.call.site == f"{pages}/server.py:{line} in forward"
    assert fmax.call.arguments.startswith("self float32[64, 32], other float32[64, 32]")
    assert report.syncs["aten::_local_scalar_dense"] == 2
    assert report.processes_finished == 2


def test_report_page_and_scrape_of_real_servers_have_the_same_numbers(
    pages: Path, tmp_path: Path, ledger: Ledger
) -> None:
    assert ledger is not None
    with serving("--no-npu-smi", pages=pages) as exporter:
        content = json.loads(get(exporter.port, "/api/v1/report").body)
        values = values_of(exporter.scrape()[0])
        assert report_from(exporter.url).ops[0].events == content["ops"][0]["events"]
        with chromium(tmp_path) as browser:
            tab = browser.open().look()
            shown_yet = "document.querySelector('#ops-table .op') !== null"
            tab.go(exporter.url.removesuffix("metrics"), shown_yet)
            shown = tab.run(
                """Object.fromEntries([...document.querySelectorAll("#ops-table tbody tr")].map(
                (row) => [row.querySelector(".op").textContent,
                          row.querySelector('[data-label="Events"]').textContent]))"""
            )
            assert tab.complaints == []
    scraped = {
        dict(labels)["op"]: value
        for (name, labels), value in values.items()
        if name == "npu_fallback_events_total"
    }
    assert {op["op"]: op["events"] for op in content["ops"]} == scraped == EVENTS
    assert shown == {op: str(events) for op, events in EVENTS.items()}
