"""Events and bytes of the dispatcher fallback, against the device's ledger and the CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from tests.support.fallback_cases import CASES, Case
from tests.support.hooked import Seen, armed, measured


@pytest.fixture(autouse=True)
def _armed() -> Iterator[None]:
    with armed():
        yield


def on_npu(inputs: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.npu(), inputs)


def run_on_npu(case: Case) -> tuple[Seen, Any]:
    inputs = on_npu(case.inputs())
    with measured() as seen:
        result = case.call("npu", *inputs)
    return seen, result


def test_fmax_of_two_small_tensors_is_one_event_of_72_bytes_out_and_24_back() -> None:
    x, y = torch.ones(2, 3).npu(), torch.zeros(2, 3).npu()
    with measured() as seen:
        result = torch.fmax(x, y)
    assert seen.events == {"aten::fmax.out": 1}
    assert seen.bytes == seen.ledger_bytes == (72, 24)
    assert torch.equal(result.cpu(), torch.ones(2, 3))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_events_of_each_shape_of_arguments_are_counted_once_per_call(case: Case) -> None:
    seen, _ = run_on_npu(case)
    assert seen.events == case.events
    assert not seen.errors


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bytes_of_each_shape_of_arguments_are_those_of_the_ledger(case: Case) -> None:
    seen, _ = run_on_npu(case)
    assert seen.bytes == seen.ledger_bytes


@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_of_each_shape_of_arguments_are_those_of_the_cpu(case: Case) -> None:
    _, result = run_on_npu(case)
    on_host = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.cpu(), result)
    torch.testing.assert_close(on_host, case.call("cpu", *case.inputs()), equal_nan=True)


def test_the_table_of_cases_holds_more_than_forty_operators() -> None:
    assert len({op for case in CASES for op in case.events}) > 40


def test_operators_with_an_npu_kernel_are_no_events() -> None:
    x = torch.ones(16).npu()
    with measured() as seen:
        (x + x).relu().sum()
    assert seen.events == {}


def test_operators_on_cpu_tensors_are_no_events() -> None:
    x = torch.ones(16)
    with measured() as seen:
        for _ in range(1000):
            torch.fmax(x, x)
    assert seen.events == {}


def test_an_event_belongs_to_the_device_of_its_tensors() -> None:
    from npu_fallback_exporter.instrument.arming import hook
    from npu_fallback_exporter.pages.page import read_page

    def events_on_second_device() -> int:
        armed_hook = hook()
        assert armed_hook is not None
        slots = read_page(str(armed_hook.page_path)).page.slots
        return sum(slot.events for key, slot in slots.items() if key.npu == 1)

    before = events_on_second_device()
    torch.lgamma(torch.ones(4, device="npu:1"))
    assert events_on_second_device() - before == 1


def test_sixteen_threads_with_a_thousand_fallbacks_each_make_16000_events() -> None:
    functions = [torch.lgamma, torch.digamma, torch.i0, torch.special.i0e]
    functions += [torch.special.i1, torch.special.i1e, torch.special.entr, torch.special.erfcx]
    x = torch.ones(2).npu()

    def work() -> None:
        for index in range(1000):
            functions[index % 8](x)

    with measured() as seen:
        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(seen.events.values()) == 16_000
    assert set(seen.events.values()) == {2000}


def test_a_fused_encoder_layer_is_one_event_that_moves_its_weights() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True).eval().npu()
    x = torch.rand(2, 16, 64).npu()
    weights = sum(p.numel() * p.element_size() for p in layer.parameters())
    with torch.no_grad(), measured() as seen:
        layer(x)
    assert seen.events == {"aten::_transformer_encoder_layer_fwd": 1}
    assert seen.bytes == seen.ledger_bytes
    assert seen.bytes[0] >= weights + x.numel() * 4


def test_backward_on_autograd_threads_counts_as_forward_does() -> None:
    x = torch.ones(4).npu().requires_grad_()
    with measured() as seen:
        torch.lgamma(x).sum().backward()
    assert seen.events == {"aten::lgamma.out": 1, "aten::digamma.out": 1}


def test_a_script_function_counts_as_eager_code_does() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(torch.lgamma(x))

    with pytest.warns(DeprecationWarning, match=r"torch\.jit\.script"):
        scripted = torch.jit.script(twice)
    x = torch.ones(4).npu()
    with measured() as seen:
        scripted(x)
    assert seen.events == {"aten::lgamma.out": 2}
