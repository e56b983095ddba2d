"""The simulated device as a device: several of them, forks, failures, what it hides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu  # noqa: F401 - registers the device
from torch.utils._python_dispatch import TorchDispatchMode

from tests.cann_sim import Ledger
from tests.support.child import run_python

pytestmark = pytest.mark.usefixtures("ledger")

HIDE_EXP = {"CANN_SIM_HIDE": "aclnnExp"}
USE_EXP = "import torch, torch_npu; torch.exp(torch.ones(2).npu()).cpu(); print('went on')"


def test_there_are_two_devices_and_each_keeps_its_tensors() -> None:
    assert torch.npu.device_count() == 2
    first, second = torch.ones(2, device="npu:0"), torch.full((2,), 2.0, device="npu:1")
    assert (first + 1).device == torch.device("npu:0")
    assert (second + 1).device == torch.device("npu:1")
    assert (second.to("npu:0") + first).tolist() == [3.0, 3.0]


def test_the_number_of_devices_comes_from_the_environment() -> None:
    done = run_python(
        "import torch, torch_npu; print(torch.npu.device_count())", env={"CANN_SIM_DEVICES": "8"}
    )
    assert done.stdout.strip() == "8", done.stderr


def test_memory_of_a_device_is_finite() -> None:
    done = run_python(
        """
import torch, torch_npu
torch.ones(1 << 20, device="npu")
try:
    torch.empty(1 << 28, device="npu")
except torch.OutOfMemoryError:
    print("out of memory")
""",
        env={"CANN_SIM_MEMORY_GB": "0.5"},
    )
    assert done.stdout.strip() == "out of memory", done.stderr


def test_a_missing_operator_says_its_name_and_ends_the_process() -> None:
    done = run_python(USE_EXP, env=HIDE_EXP)
    assert done.returncode == 70
    assert "aclnnExp" in done.stderr
    assert "went on" not in done.stdout


def test_a_missing_operator_is_an_exception_with_its_name_where_there_is_no_queue() -> None:
    code = f"""
try:
    exec({USE_EXP!r})
except RuntimeError as error:
    print("aclnnExp" in str(error))
"""
    done = run_python(code, env={**HIDE_EXP, "TASK_QUEUE_ENABLE": "0"})
    assert done.stdout.strip() == "True", done.stderr


def test_an_operator_that_fails_says_why() -> None:
    code = """
import torch, torch_npu
try:
    torch.linalg.cholesky(-torch.eye(2).npu())
except RuntimeError as error:
    print("positive-definite" in str(error))
"""
    done = run_python(code, env={"TASK_QUEUE_ENABLE": "0"})
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize(
    ("hidden", "expression"),
    [
        ("aclnnLogit", "torch.logit(x)"),
        ("aclnnPolar", "torch.polar(x, x).abs()"),
        ("aclnnUpsampleNearestExact1d", "torch._C._nn._upsample_nearest_exact1d(x[None], [4])"),
    ],
)
def test_hiding_an_operator_reaches_the_cpu_kernel_that_torch_npu_keeps_for_it(
    hidden: str, expression: str
) -> None:
    code = f"""
import torch, torch_npu
from tests.cann_sim import Ledger
ledger = Ledger()
x = torch.full((2, 2), 0.25).npu()
before = ledger.snapshot()
y = {expression}
torch.npu.synchronize()
moved = ledger.snapshot() - before
x = x.cpu()
assert torch.allclose(y.cpu(), {expression})
print(moved.d2h_calls > 0, moved.h2d_calls > 0)
"""
    there = run_python(code)
    assert there.stdout.strip() == "False False", there.stderr
    hidden_away = run_python(code, env={"CANN_SIM_HIDE": hidden})
    assert hidden_away.stdout.strip() == "True True", hidden_away.stderr


def test_a_forked_child_is_refused() -> None:
    code = """
import os, torch, torch_npu
device = torch.ones(2).npu()
child = os.fork()
if child == 0:
    try:
        device.cpu()
    except RuntimeError as error:
        print("107002" in str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(device.cpu().tolist())
"""
    done = run_python(code)
    assert done.stdout.split("\n")[:2] == ["True", "[1.0, 1.0]"], done.stderr


def test_a_spawned_child_has_a_device_of_its_own() -> None:
    code = """
import multiprocessing, torch, torch_npu
import sys, types

def main():
    device = torch.ones(2).npu()
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        print(pool.apply(eval, ("__import__('torch').ones(2, device='npu').sum().item()",)))

main()
"""
    assert run_python(code).stdout.strip() == "2.0"


def test_kernels_are_invisible_to_dispatch_modes_and_profilers(ledger: Ledger) -> None:
    seen: list[str] = []

    class Recorder(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    device = torch.ones(4).npu()
    with Recorder():
        device.exp()
        torch.npu.synchronize()
    assert seen == ["aten.exp.default"]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        device.exp()
        torch.npu.synchronize()
    assert [e.name for e in profile.events() if e.name == "aten::exp"] == ["aten::exp"]


def test_the_thread_count_of_the_host_survives_kernels() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        torch.ones(4).npu().exp().cpu()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_streams_and_events_tell_that_the_work_is_done() -> None:
    stream = torch.npu.Stream()
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    with torch.npu.stream(stream):
        start.record()
        torch.ones(4, device="npu").exp()
        end.record()
    stream.synchronize()
    assert stream.query()
    assert end.query()
    assert start.elapsed_time(end) >= 0


def test_growing_segments_work() -> None:
    code = "import torch, torch_npu; x = torch.ones(1 << 22).npu(); print((x + 1).sum().item())"
    done = run_python(code, env={"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"})
    assert done.stdout.strip() == str(float(1 << 23)), done.stderr
