"""Transfers by cause, syncs, operators and refusals, against the device's ledger."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.support.hooked import arm, armed, measured, own_page
from tests.support.user_copies import USER_COPIES


@pytest.fixture(autouse=True)
def _armed() -> Iterator[None]:
    with armed():
        yield


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(4, 6).npu()


@pytest.mark.parametrize("name", USER_COPIES)
@pytest.mark.parametrize("mode", ["observe", "strict"])
def test_copies_that_the_program_asks_for_are_no_events_and_are_never_refused(
    x: torch.Tensor, name: str, mode: str
) -> None:
    arm(mode)
    with measured() as seen:
        USER_COPIES[name](x)
    assert (seen.events, seen.blocked) == ({}, {})


@pytest.mark.parametrize("name", USER_COPIES)
def test_copies_that_the_program_asks_for_are_counted_as_the_ledger_counts_them(
    x: torch.Tensor, name: str
) -> None:
    with measured() as seen:
        USER_COPIES[name](x)
    assert set(seen.transfers) <= {"d2h user", "h2d user", "d2h sync"}
    assert seen.ledger is not None
    for direction in ("d2h", "h2d"):
        moved = [pair for label, pair in seen.transfers.items() if label.startswith(direction)]
        assert sum(bytes_ for bytes_, _ in moved) == getattr(seen.ledger, f"{direction}_bytes")
        assert sum(copies for _, copies in moved) == getattr(seen.ledger, f"{direction}_calls")


def test_saving_and_loading_is_no_event(x: torch.Tensor) -> None:
    with measured() as seen:
        buffer = io.BytesIO()
        torch.save(x, buffer)
        buffer.seek(0)
        torch.load(buffer)
    assert seen.events == {}
    assert seen.transfers["d2h user"][0] == seen.ledger_bytes[0]


def test_a_hundred_lists_of_64_integers_move_51200_bytes() -> None:
    x = torch.arange(64).reshape(64, 1).npu()
    with measured() as seen:
        for _ in range(100):
            x.tolist()
    assert seen.transfers == {"d2h user": (51_200, 100)}


def test_a_list_of_512_integers_moves_4096_bytes_to_the_device() -> None:
    with measured() as seen:
        torch.tensor(list(range(512)), device="npu")
    assert seen.transfers == {"h2d user": (4_096, 1)}


def test_logits_to_the_host_and_back_move_their_bytes_each_way() -> None:
    x = torch.zeros(16, 152_064, dtype=torch.bfloat16).npu()
    with measured() as seen:
        for _ in range(10):
            x = x.cpu().to("npu")
    assert seen.transfers == {"d2h user": (48_660_480, 10), "h2d user": (48_660_480, 10)}


def test_numpy_work_between_copies_is_no_fallback() -> None:
    x = torch.ones(32, 100, 100).npu()
    with measured() as seen:
        for _ in range(50):
            x = torch.from_numpy(x.cpu().numpy() + 1).to("npu")
    assert seen.events == {}
    assert seen.transfers["d2h user"] == (50 * 1_280_000, 50)


def test_checks_of_a_condition_are_syncs_of_one_byte() -> None:
    k = torch.arange(64, dtype=torch.int32).npu()
    with measured() as seen:
        for _ in range(200):
            if torch.all((k <= 1024) & (k >= 1)):
                raise AssertionError
    assert seen.syncs == {"aten::_local_scalar_dense": 200}
    assert seen.transfers == {"d2h sync": (200, 200)}
    assert seen.events == {}


SYNCS: dict[str, tuple[str, Callable[[torch.Tensor], Any]]] = {
    "item": ("aten::_local_scalar_dense", lambda x: x.sum().item()),
    "nonzero": ("aten::nonzero", lambda x: x.nonzero()),
    "masked_select": ("aten::masked_select", lambda x: x.masked_select(x > 0.5)),
    "a mask as index": ("aten::index.Tensor", lambda x: x[x > 0.5]),
    "unique": ("aten::_unique2", lambda x: torch.unique(x)),
    "unique_consecutive": ("aten::unique_consecutive", lambda x: torch.unique_consecutive(x)),
    "unique rows": ("aten::unique_dim", lambda x: torch.unique(x, dim=0)),
}


@pytest.mark.parametrize("name", SYNCS)
def test_operators_that_wait_for_a_value_are_syncs_and_no_events(
    x: torch.Tensor, name: str
) -> None:
    op, call = SYNCS[name]
    with measured() as seen:
        call(x)
    assert seen.syncs == {op: 1}
    assert seen.events == {}


def test_an_index_of_positions_is_no_sync(x: torch.Tensor) -> None:
    positions = torch.tensor([0, 2]).npu()
    with measured() as seen:
        x[positions]
    assert seen.syncs == {}


def test_only_outermost_operators_are_counted() -> None:
    x = torch.ones(2, 2)
    with measured() as seen:
        x.add(1)
        torch.nn.functional.linear(x, x)
    assert seen.operators == 2


def test_operators_on_the_cpu_allocate_nothing_on_the_device() -> None:
    x = torch.ones(4)
    with measured() as seen:
        for _ in range(1000):
            x.add(1)
    assert (seen.device_allocations, seen.events, seen.operators) == (0, {}, 1000)


def test_operators_on_the_npu_allocate_on_the_device(x: torch.Tensor) -> None:
    with measured() as seen:
        for _ in range(10):
            x.add(x)
    assert seen.device_allocations == 10


def test_copies_of_a_dispatcher_fallback_have_that_cause(x: torch.Tensor) -> None:
    with measured() as seen:
        torch.fmax(x, x)
    assert seen.transfers == {"d2h fallback": (288, 3), "h2d fallback": (96, 1)}


def test_sizes_of_copies_fall_into_buckets_by_direction() -> None:
    def buckets() -> tuple[int, ...]:
        page = own_page()
        assert page is not None
        return page.counters.size_buckets_h2d

    before = buckets()
    for count in (16, 17, 256, 257):  # 64, 68, 1024 and 1028 bytes
        torch.ones(count).npu()
    assert [b - a for a, b in zip(before, buckets(), strict=True)] == [1, 2, 1, 0, 0, 0, 0, 0]


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    library = torch.library.Library("nfe_user", "DEF")
    library.define("over_the_host(Tensor x) -> Tensor")
    library.impl("over_the_host", lambda x: (x.cpu() + 1).npu(), "PrivateUse1")
    yield library
    library._destroy()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("mode", ["observe", "strict"])
def test_a_users_own_operator_that_goes_over_the_host_is_no_event(
    x: torch.Tensor, mode: str
) -> None:
    arm(mode)
    with measured() as seen:
        torch.ops.nfe_user.over_the_host(x)
    assert (seen.events, seen.blocked) == ({}, {})
    assert seen.transfers == {"d2h user": (96, 1), "h2d user": (96, 1)}


def test_an_explicit_kernel_is_refused_at_its_first_copy_in_strict_mode(x: torch.Tensor) -> None:
    arm("strict")
    with measured() as seen, pytest.raises(RuntimeError, match=r"refuses aten::var\.correction"):
        torch.var(x, correction=0.5)
    assert (seen.events, seen.errors) == ({}, {})
    assert seen.blocked == {"aten::var.correction": 1}
    assert seen.ledger_bytes == (0, 0)


def test_an_explicit_kernel_that_is_allowed_runs_in_strict_mode(
    x: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPU_FALLBACK_ALLOW", "aten::var.correction")
    arm("strict")
    with measured() as seen:
        torch.var(x, correction=0.5)
    assert seen.events == {"aten::var.correction": 1}


def host_and_full_seconds(op: str) -> tuple[float, float]:
    page = own_page()
    assert page is not None
    slots = [slot for key, slot in page.slots.items() if key.op == op]
    return sum(s.host_ns for s in slots) / 1e9, sum(s.duration_ns for s in slots) / 1e9


def test_host_time_of_an_event_is_part_of_its_duration(x: torch.Tensor) -> None:
    host_before, full_before = host_and_full_seconds("aten::lgamma.out")
    torch.lgamma(x)
    host, full = host_and_full_seconds("aten::lgamma.out")
    assert 0 < host - host_before < full - full_before


def test_a_backward_pass_on_autograd_threads_counts_its_copies() -> None:
    x = torch.ones(4).npu().requires_grad_()
    with measured() as seen:
        torch.lgamma(x).sum().backward()
    assert seen.events == {"aten::lgamma.out": 1, "aten::digamma.out": 1}
    assert seen.transfers["d2h fallback"][0] == seen.ledger_bytes[0]


def test_a_compiled_call_counts_as_an_eager_one(x: torch.Tensor) -> None:
    def function(value: torch.Tensor) -> torch.Tensor:
        return torch.var(value, correction=0.5) + torch.fmax(value, value).cpu().sum().npu()

    with measured() as eager:
        function(x)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager")
    compiled(x)
    with measured() as seen:
        compiled(x)
    torch._dynamo.reset()
    assert (seen.events, seen.transfers) == (eager.events, eager.transfers)
