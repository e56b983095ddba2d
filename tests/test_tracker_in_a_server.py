"""The tracker in processes of their own: queue modes, torch_npu's switch, modes, scrapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from npu_fallback_exporter.pages.page import read_page
from tests.support.child import run_python

pytestmark = pytest.mark.usefixtures("hook_is_built")


def on(folder: Path, **variables: str) -> dict[str, str]:
    return {"NPU_FALLBACK_DIR": str(folder), **variables}


def user_copies(folder: Path, queue: str) -> list[dict[str, Any]]:
    code = "from tests.support.user_copies import main; main()"
    done = run_python(code, on(folder, TASK_QUEUE_ENABLE=queue))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("queue", ["0", "1", "2"])
def test_transfers_are_the_ledgers_whether_or_not_copies_are_queued(
    tmp_path: Path, queue: str
) -> None:
    for seen in user_copies(tmp_path, queue):
        moved = {"d2h": [0, 0], "h2d": [0, 0]}
        for label, (bytes_, copies) in seen["transfers"].items():
            moved[label[:3]][0] += bytes_
            moved[label[:3]][1] += copies
        for direction in ("d2h", "h2d"):
            witness = [seen["ledger"][f"{direction}_{what}"] for what in ("bytes", "calls")]
            assert moved[direction] == witness, (seen["name"], direction)


# The vendor's own three scenarios: each is allowed by default and with the switch at its lax
# value, refused at its strict value; an operator with an NPU kernel never is.

SCENARIOS = """
import torch, torch_npu, npu_fallback_exporter as nfe
x = torch.ones(2, 3).npu()
sparse = torch.eye(3).to_sparse_csr().npu()
calls = {
    "normal": lambda: x + x,
    "dispatcher": lambda: torch.fmax(x, x),
    "sparse sum": lambda: torch._sparse_csr_sum(sparse, [0], True),
    "sparse prod": lambda: torch._sparse_csr_prod(sparse, [0], True),
}
refused = []
for name, call in calls.items():
    try:
        call()
    except RuntimeError:
        refused.append(name)
stats = nfe.get_fallback_stats()
print(refused, stats.total, stats.blocked, stats.errors)
"""

ALLOWED = "[] 3 0 0"
REFUSED = "['dispatcher', 'sparse sum', 'sparse prod'] 0 3 0"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ALLOWED),
        ({"TORCH_NPU_FALLBACK_CPU_DISABLE": "0"}, ALLOWED),
        ({"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"}, REFUSED),
        ({"TORCH_NPU_CPU_FALLBACK": "1"}, ALLOWED),
        ({"TORCH_NPU_CPU_FALLBACK": "0"}, REFUSED),
        # torch_npu refuses whatever our own mode and list say; its refusals are counted.
        (
            {
                "TORCH_NPU_FALLBACK_CPU_DISABLE": "1",
                "NPU_FALLBACK_MODE": "observe",
                "NPU_FALLBACK_ALLOW": "*",
            },
            REFUSED,
        ),
        # Without the switch our list decides.
        ({"NPU_FALLBACK_MODE": "strict", "NPU_FALLBACK_ALLOW": "*"}, ALLOWED),
    ],
    ids=str,
)
def test_the_vendors_scenarios_are_allowed_and_refused_as_its_switch_says(
    tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    done = run_python(SCENARIOS, on(tmp_path, NPU_FALLBACK_HOOK="1", **variables))
    assert done.stdout.strip() == expected, done.stderr


def test_waiting_for_queued_work_is_in_the_duration_and_not_in_the_host_time(
    tmp_path: Path,
) -> None:
    code = """
import torch, torch_npu
a = torch.ones(8, 8).npu()
x = torch.ones(4).npu()
torch.lgamma(x)
for _ in range(100):
    a.mm(a)
torch.lgamma(x)
"""
    variables = {"CANN_SIM_KERNEL_US": "2000", "TASK_QUEUE_ENABLE": "1"}
    run_python(code, on(tmp_path, NPU_FALLBACK_HOOK="1", **variables))
    page = read_page(str(next(tmp_path.glob("*.page")))).page
    (slot,) = page.slots.values()
    waited = 100 * 2_000_000
    assert slot.events == slot.host_ns_events == 2
    assert slot.duration_ns > waited / 2
    assert slot.host_ns < waited / 4


def test_only_the_dispatcher_half_is_watched_when_the_environment_says_so(tmp_path: Path) -> None:
    code = """
import torch, torch_npu
x = torch.ones(2, 3).npu()
torch.fmax(x, x)
torch.var(x, correction=0.5)
x.sum().item()
"""
    run_python(code, on(tmp_path, NPU_FALLBACK_HOOK="1", NPU_FALLBACK_TRACK="fallbacks"))
    page = read_page(str(next(tmp_path.glob("*.page")))).page
    assert page.track == "fallbacks"
    assert {(key.op, key.kind) for key in page.slots} == {("aten::fmax.out", "dispatcher")}
    assert (page.transfers, page.syncs, page.counters.operators) == ({}, {}, 0)


def test_a_variable_that_is_set_after_arming_changes_nothing(tmp_path: Path) -> None:
    code = """
import os, torch, torch_npu
os.environ["NPU_FALLBACK_MODE"] = "strict"
print(torch.fmax(torch.ones(2).npu(), torch.ones(2).npu()).tolist())
"""
    done = run_python(code, on(tmp_path, NPU_FALLBACK_MODE="observe"))
    assert done.stdout.strip() == "[1.0, 1.0]"
    page = read_page(str(next(tmp_path.glob("*.page")))).page
    assert (page.mode, page.mode_source) == ("observe", "NPU_FALLBACK_MODE")


def test_workers_of_a_data_loader_leave_no_pages(tmp_path: Path) -> None:
    code = """
import torch, torch_npu
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(8.0))
batches = [batch.npu() for (batch,) in DataLoader(data, batch_size=2, num_workers=2)]
print(sum(float(batch.sum()) for batch in batches))
"""
    done = run_python(code, on(tmp_path, NPU_FALLBACK_HOOK="1"))
    assert done.stdout.strip() == "28.0", done.stderr
    assert len(list(tmp_path.glob("*.page"))) == 1


def test_a_forked_workers_operators_before_its_first_count_are_not_lost(tmp_path: Path) -> None:
    code = """
import os, torch, torch_npu
if os.fork() == 0:
    x = torch.ones(2)
    for _ in range(10):
        x.add(1)
    torch.fmax(x.npu(), x.npu())
    os._exit(0)
os.wait()
"""
    run_python(code, on(tmp_path, NPU_FALLBACK_HOOK="1"))
    pages = [read_page(str(path)).page for path in tmp_path.glob("*.page")]
    (child,) = [page for page in pages if page.slots]
    # ones, ten times add, two copies, fmax
    assert child.counters.operators == 14


def test_arming_and_disarming_while_threads_work_harms_none_of_them(tmp_path: Path) -> None:
    code = """
import threading, torch, torch_npu
import npu_fallback_exporter as nfe

x = torch.ones(4, 4).npu()
mask = x > 0
errors = []
stop = threading.Event()

def work():
    try:
        while not stop.is_set():
            assert x.cpu().sum() == 16 == x.sum().item()
            assert len(torch.nonzero(x)) == 16 == len(x[mask])
            assert torch.var(x, 1, correction=0.5).cpu().sum() == 0
            assert torch.fmax(x, x).cpu().sum() == 16
    except BaseException as error:
        errors.append(repr(error))

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(200):
    assert nfe.install("observe")
    nfe.uninstall()
stop.set()
for thread in threads: thread.join()
print(errors, nfe.get_fallback_stats().total > 0)
"""
    done = run_python(code, on(tmp_path))
    assert (done.returncode, done.stdout) == (0, "[] True\n"), done.stderr


def test_strict_mode_says_that_the_dispatcher_half_alone_is_guarded(tmp_path: Path) -> None:
    env = on(tmp_path, NPU_FALLBACK_MODE="strict", NPU_FALLBACK_TRACK="fallbacks")
    (line,) = run_python("import torch, torch_npu", env).own_lines
    assert "strict mode refuses the dispatcher's fallbacks only" in line


def test_a_block_set_after_loading_refuses_nothing_that_happened_before(tmp_path: Path) -> None:
    code = """
import torch, torch_npu
import npu_fallback_exporter as nfe
x = torch.ones(4).npu()
for _ in range(30): torch.lgamma(x)
with nfe.forbid_fallback():
    (x + x).sum().item()
print(nfe.get_fallback_stats().total)
"""
    done = run_python(code, on(tmp_path, NPU_FALLBACK_MODE="observe"))
    assert (done.returncode, done.stdout) == (0, "30\n"), done.stderr
