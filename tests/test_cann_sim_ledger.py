"""The simulated device's ledger against what torch_npu is known to move."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_npu  # noqa: F401 - registers the device

from tests.cann_sim import Ledger, Snapshot
from tests.support.child import run_python


@pytest.fixture
def moved(ledger: Ledger) -> Callable[[Callable[[], object]], Snapshot]:
    """Return what one call moves; the device is up and idle before and after."""

    def measure(call: Callable[[], object]) -> Snapshot:
        torch.ones(1).npu()
        torch.npu.synchronize()
        before = ledger.snapshot()
        call()
        torch.npu.synchronize()
        return ledger.snapshot() - before

    return measure


Moved = Callable[[Callable[[], object]], Snapshot]


def copies(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Return direction -> (calls, bytes), without the directions in which nothing moved."""
    pairs = {
        name: (getattr(snapshot, f"{name}_calls"), getattr(snapshot, f"{name}_bytes"))
        for name in ("h2h", "h2d", "d2h", "d2d")
    }
    return {name: pair for name, pair in pairs.items() if pair != (0, 0)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_a_tensor_goes_to_the_device_in_one_copy_of_its_bytes(
    moved: Moved, dtype: torch.dtype
) -> None:
    source = torch.ones(3, 5, dtype=dtype)
    assert copies(moved(source.npu)) == {"h2d": (1, 15 * dtype.itemsize)}


def test_a_tensor_comes_back_in_one_copy_of_its_bytes(moved: Moved) -> None:
    device = torch.ones(3, 5).npu()
    assert copies(moved(device.cpu)) == {"d2h": (1, 60)}


def test_a_strided_view_moves_the_bytes_of_the_view(moved: Moved) -> None:
    view = torch.ones(4, 6).npu()[:, ::2]
    assert copies(moved(view.cpu)) == {"d2h": (1, 48)}


def test_item_moves_one_element(moved: Moved) -> None:
    device = torch.ones(1, dtype=torch.int64).npu()
    assert copies(moved(device.item)) == {"d2h": (1, 8)}


def test_a_list_becomes_a_device_tensor_in_one_copy(moved: Moved) -> None:
    numbers = list(range(512))
    assert copies(moved(lambda: torch.tensor(numbers, device="npu"))) == {"h2d": (1, 4096)}


def test_an_asynchronous_pinned_copy_is_counted_in_both_directions(moved: Moved) -> None:
    source = torch.arange(8.0).pin_memory()
    target = torch.empty(8).pin_memory()

    def there_and_back() -> None:
        target.copy_(source.to("npu", non_blocking=True), non_blocking=True)

    assert copies(moved(there_and_back)) == {"h2d": (1, 32), "d2h": (1, 32)}
    assert torch.equal(target, source)


def test_a_dispatcher_fallback_moves_all_arguments_and_the_out_tensor(moved: Moved) -> None:
    device = torch.ones(2, 3).npu()
    assert copies(moved(lambda: torch.fmax(device, device))) == {"d2h": (3, 72), "h2d": (1, 24)}


def test_work_on_one_device_moves_nothing(moved: Moved) -> None:
    device = torch.ones(4, 6).npu()

    def work() -> None:
        (device.clone().t().contiguous() @ device).half()[torch.ones(6, device="npu") > 0]

    assert copies(moved(work)) == {}


def test_a_copy_between_devices_is_neither_to_nor_from_the_host(moved: Moved) -> None:
    device = torch.arange(6.0).npu()
    target = torch.empty(6, device="npu:1")
    assert copies(moved(lambda: target.copy_(device))) == {"d2d": (1, 24)}
    assert torch.equal(target.cpu(), torch.arange(6.0))


def test_lists_of_tensors_copied_as_a_batch_are_counted_one_by_one(moved: Moved) -> None:
    host = [torch.ones(3), torch.ones(5)]
    device = [torch.empty(3).npu(), torch.empty(5).npu()]
    assert copies(moved(lambda: torch._foreach_copy_(device, host))) == {"h2d": (2, 32)}
    assert [t.sum().item() for t in device] == [3, 5]


def test_operators_on_the_host_make_no_call_to_the_runtime(moved: Moved) -> None:
    def work() -> None:
        for _ in range(100):
            torch.ones(8).exp().sum()

    # The synchronisation at the end of the measurement is the only call.
    assert moved(work).api_calls == 1


def test_every_kernel_is_counted_and_has_a_name(ledger: Ledger, moved: Moved) -> None:
    device = torch.ones(8).npu()
    before = ledger.kernels()
    assert moved(lambda: device.exp().exp()).kernels == 2
    assert ledger.kernels()["aclnnExp"] - before["aclnnExp"] == 2


def test_a_copy_takes_the_time_that_the_environment_asks_for() -> None:
    done = run_python(
        """
import time, torch, torch_npu
device = torch.ones(250_000).npu()
start = time.perf_counter()
device.cpu()
print(time.perf_counter() - start)
""",
        env={"CANN_SIM_COPY_US": "5000", "CANN_SIM_COPY_GBPS": "0.1"},
    )
    # 5 ms latency and 10 ms for a million bytes; a busy machine can only take longer.
    assert float(done.stdout) >= 0.015, done.stderr
