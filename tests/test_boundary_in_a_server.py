"""The driver boundary of real torch_npu processes; the simulated device's ledger is the witness."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npu_fallback_exporter.pages.page import read_page
from tests.support import boundary
from tests.support.child import Finished, child_environment, run_python

pytestmark = pytest.mark.usefixtures("hook_is_built")


def shown(done: Finished) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def in_server(folder: Path, code: str, **variables: str) -> list[dict[str, Any]]:
    """Run ``code`` in an armed process with the boundary preloaded; return what it showed."""
    env = boundary.preloaded(NPU_FALLBACK_DIR=str(folder), NPU_FALLBACK_HOOK="1")
    return shown(run_python(boundary.SHOW + code, {**env, **variables}))


WORK = """
show()
x = torch.randn(1000).npu()                     # up
x.cpu(), x.tolist(), x.half().to("cpu")         # down
x.sum().item(), bool(x[0] > 0), float(x[3])     # waits
str(x[:50])                                     # prints, one element after the other
torch.tensor([1, 2, 3], device="npu")[torch.tensor([0, 2])]
torch.lgamma(x)                                 # falls back, both ways
x[x > 0], x.nonzero()                           # no copy
host = torch.empty(512, pin_memory=True)
device = host.to("npu", non_blocking=True)      # by the queue
host.copy_(device, non_blocking=True)
torch._foreach_copy_([torch.empty(5), torch.empty(6)], [x[:5].clone(), x[:6].clone()])
torch.empty(0).npu().cpu()
x.t().clone().contiguous()
x.to("npu:1").to("npu:0")                       # between devices
x.npu().expand(4, 1000).cpu()
show()
"""


@pytest.mark.parametrize("queue", ["0", "1", "2"])
def test_the_page_shows_what_the_device_moved(tmp_path: Path, queue: str) -> None:
    first, last = in_server(tmp_path, WORK, TASK_QUEUE_ENABLE=queue)
    assert last["driver"] == last["ledger"]
    assert all(
        after > before for before, after in zip(first["driver"], last["driver"], strict=True)
    )
    assert (first["boundary"], last["boundary"]) == ("full", "full")


def test_driver_totals_are_the_sum_over_causes_once_no_copy_is_in_flight(tmp_path: Path) -> None:
    code = "from tests.support.user_copies import main; main()"
    env = boundary.preloaded(NPU_FALLBACK_DIR=str(tmp_path), NPU_FALLBACK_HOOK="1")
    assert run_python(code, env).returncode == 0
    page = read_page(str(next(tmp_path.glob("*.page")))).page
    for index, direction in enumerate(("d2h", "h2d")):
        cells = [cell for key, cell in page.transfers.items() if key.direction == direction]
        assert page.counters.driver_bytes[index] == sum(cell.bytes for cell in cells) > 0
        assert page.counters.driver_transfers[index] == sum(cell.transfers for cell in cells)


def test_an_older_driver_takes_other_forms(tmp_path: Path) -> None:
    code = WORK.replace("show()\n", "", 1) + "show(**Ledger().functions())\n"
    for driver, conditional in (("25.5.0", True), ("24.1.0", False)):
        *_, last = in_server(tmp_path, code, CANN_SIM_DRIVER=driver)
        assert ("aclrtMemcpyAsyncWithCondition" in last) == conditional
        assert (last["boundary"], last["driver"]) == ("full", last["ledger"])


def test_copies_by_name_from_python_are_seen(tmp_path: Path) -> None:
    code = """
import ctypes
runtime = ctypes.CDLL("libascendcl.so")
x, host = torch.ones(100).npu(), torch.empty(100)
def copy(name, *more):
    size = ctypes.c_size_t(400)
    return runtime[name](ctypes.c_void_p(host.data_ptr()), size, ctypes.c_void_p(x.data_ptr()),
                         size, 2, *more)
results = [copy("aclrtMemcpy"), copy("aclrtMemcpyAsync", None)]
pointers = (ctypes.c_void_p * 2)(x.data_ptr(), x.data_ptr() + 40)
hosts = (ctypes.c_void_p * 2)(host.data_ptr(), host.data_ptr() + 40)
sizes, first = (ctypes.c_size_t * 2)(40, 4), (ctypes.c_size_t * 1)(0)
places = (ctypes.c_uint32 * 8)(0, 1, 0, 0, 0, 0, 0, 0)  # to the device, from the host
results.append(runtime.aclrtMemcpyBatch(pointers, sizes, hosts, sizes, ctypes.c_size_t(2), places,
                                        first, ctypes.c_size_t(1), first))
show(results=results)
"""
    (last,) = in_server(tmp_path, code)
    assert (last["results"], last["driver"]) == ([0, 0, 0], last["ledger"])
    assert last["driver"] == [800, 444, 2, 3]


def test_a_failed_copy_is_none_and_one_by_address_is_a_gap(tmp_path: Path) -> None:
    code = """
import ctypes
runtime = ctypes.CDLL("libascendcl.so")
x, host = torch.ones(100).npu(), torch.empty(100)
def copy(room, kind):
    return runtime.aclrtMemcpy(ctypes.c_void_p(host.data_ptr()), ctypes.c_size_t(room),
                               ctypes.c_void_p(x.data_ptr()), ctypes.c_size_t(400), kind)
show(error=copy(399, 2))
show(error=copy(400, 4))
"""
    failed, by_address = in_server(tmp_path, code)
    assert failed["error"] != 0
    assert (failed["boundary"], failed["driver"]) == ("full", failed["ledger"])
    assert (by_address["error"], by_address["boundary"]) == (0, "partial")
    assert by_address["driver"] == failed["driver"]


def test_what_was_copied_before_arming_is_counted(tmp_path: Path) -> None:
    code = """
torch.ones(100).npu().cpu()
nfe.install("observe")
torch.ones(10).npu().cpu()
show()
nfe.uninstall()
torch.ones(1).npu().cpu()
show()
"""
    armed, disarmed = in_server(tmp_path, code, NPU_FALLBACK_HOOK="0")
    assert armed["driver"] == armed["ledger"] == [440, 440, 2, 2]
    assert disarmed["driver"] == disarmed["ledger"] == [444, 444, 3, 3]


def test_a_forked_child_has_figures_of_its_own(tmp_path: Path) -> None:
    code = """
read, write = os.pipe()
if os.fork() == 0:
    torch.ones(10).npu().cpu()      # no event: a copy is enough for a page
    show()
    os._exit(0)
os.wait()
torch.ones(1).npu()
show()
"""
    child, parent = in_server(tmp_path, code)
    assert child["driver"] == child["ledger"] == [40, 40, 1, 1]
    assert parent["driver"] == parent["ledger"] == [0, 4, 0, 1]
    assert (child["boundary"], parent["boundary"]) == ("full", "full")
    assert len(list(tmp_path.glob("*.page"))) == 2


COPIES = """
torch.ones(10).npu().cpu()
host = torch.empty(512, pin_memory=True)
host.copy_(host.to("npu"), non_blocking=True)
show()
"""


def test_not_preloaded_it_is_loaded_early_and_misses_what_is_looked_up(tmp_path: Path) -> None:
    boundary.library()
    env = {"NPU_FALLBACK_DIR": str(tmp_path), "NPU_FALLBACK_HOOK": "1"}
    (last,) = shown(run_python(boundary.SHOW + COPIES, env))
    assert last["boundary"] == "partial"
    assert last["driver"] == [40, 40 + 2048, 1, 2]
    assert last["ledger"] == [40 + 2048, 40 + 2048, 2, 2]


def test_loaded_after_torch_npu_or_never_nothing_is_claimed(tmp_path: Path) -> None:
    late = f"ctypes.CDLL({str(boundary.library())!r}, mode=ctypes.RTLD_GLOBAL)"
    for load in ("pass", late):
        code = f"{boundary.SHOW}import ctypes\n{load}\nnfe.install('observe')\n{COPIES}"
        (last,) = shown(run_python(code, {"NPU_FALLBACK_DIR": str(tmp_path)}))
        assert (last["boundary"], last["driver"]) == ("none", [0, 0, 0, 0])


def run_verb(folder: Path, code: str, **variables: str) -> Finished:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "npu_fallback_exporter", "run", "--no-serve", "--"),
            *(sys.executable, "-c", code),
        ],
        env=child_environment({"NPU_FALLBACK_DIR": str(folder), **variables}),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def test_run_watches_the_boundary_of_all_that_it_starts(tmp_path: Path) -> None:
    code = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {boundary.SHOW + COPIES!r}], check=True)
"""
    (last,) = shown(run_verb(tmp_path, code))
    assert (last["boundary"], last["driver"]) == ("full", last["ledger"])


def test_run_keeps_what_the_user_preloads(tmp_path: Path) -> None:
    show = "import os; print(os.environ.get('LD_PRELOAD'))"
    own = str(boundary.library())
    assert run_verb(tmp_path, show, LD_PRELOAD="").stdout.strip() == own
    assert run_verb(tmp_path, show, LD_PRELOAD="libm.so.6").stdout.strip() == f"libm.so.6:{own}"
    assert run_verb(tmp_path, show, LD_PRELOAD=f"{own} libm.so.6").stdout.strip() == (
        f"{own} libm.so.6"
    )
    assert run_verb(tmp_path, show, NPU_FALLBACK_HOOK="0", LD_PRELOAD="").stdout.strip() == ""
