"""What the hook leaves as it was: dispatch tables, tracing, compiling, and the user's errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch._inductor.utils import run_and_get_code
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument.arming import explicit_kernels
from tests.cann_sim import Ledger
from tests.support.hooked import arm, armed, measured

KEYS = ["CPU", "Meta", "PrivateUse1", "AutogradPrivateUse1", "SparsePrivateUse1"]


def dispatch_dumps() -> dict[str, tuple[str, str]]:
    names = torch._C._dispatch_get_all_op_names()
    return {
        name: (torch._C._dispatch_dump(name), torch._C._dispatch_dump_table(name)) for name in names
    }


def kernel_answers() -> dict[tuple[str, str], tuple[bool, bool]]:
    return {
        (name, key): (
            torch._C._dispatch_has_kernel_for_dispatch_key(name, key),
            torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, key),
        )
        for name in torch._C._dispatch_get_all_op_names()
        for key in KEYS
    }


def armed_and_not(function: Callable[[], Any]) -> tuple[Any, Any]:
    nfe.uninstall()
    bare = function()
    with armed():
        return function(), bare


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    library = torch.library.Library("nfe_test", "DEF")
    library.define("double(Tensor x) -> Tensor")
    for key in ("CPU", "PrivateUse1"):
        library.impl("double", lambda x: x * 2, key)
    library.impl("double", torch.empty_like, "Meta")
    yield library
    library._destroy()


def test_dispatch_tables_are_equal_before_arming_and_after_disarming() -> None:
    nfe.uninstall()
    before = dispatch_dumps()
    with armed():
        torch.lgamma(torch.ones(2).npu())
    assert dispatch_dumps() == before


def test_dispatch_tables_look_the_same_while_armed() -> None:
    def origins() -> dict[str, str]:
        return {op: table for op, (_, table) in dispatch_dumps().items()}

    now, bare = armed_and_not(origins)
    assert now == bare


def test_only_listed_kernels_change_how_they_are_called_while_armed() -> None:
    def kernels() -> dict[str, str]:
        return {op: dump for op, (dump, _) in dispatch_dumps().items()}

    now, bare = armed_and_not(kernels)
    changed = {op for op in bare if now[op] != bare[op]}
    assert changed <= set(explicit_kernels())
    unboxed, boxed = "[ boxed unboxed ]", "[ boxed ]"  # so that one wrapper serves them all
    for op in changed:
        assert now[op].replace(unboxed, boxed) == bare[op].replace(unboxed, boxed)


def test_arming_prints_no_warning_about_overridden_kernels(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with armed():
        pass
    assert "overrid" not in capfd.readouterr().err.lower()


def test_no_operator_seems_to_have_an_npu_kernel_because_of_the_hook() -> None:
    now, bare = armed_and_not(kernel_answers)
    assert now == bare


def test_arming_twice_and_disarming_twice_is_as_once() -> None:
    nfe.uninstall()
    before = dispatch_dumps()
    arm()
    arm()
    with measured() as seen:
        torch.lgamma(torch.ones(2).npu())
    assert seen.events == {"aten::lgamma.out": 1}
    nfe.uninstall()
    nfe.uninstall()
    assert dispatch_dumps() == before


def test_install_while_armed_changes_nothing() -> None:
    with armed():
        assert nfe.install()
        with measured() as seen:
            torch.lgamma(torch.ones(2).npu())
        assert seen.events == {"aten::lgamma.out": 1}


def test_nothing_is_counted_after_disarming() -> None:
    with armed():
        pass
    with measured() as seen:
        torch.lgamma(torch.ones(2).npu())
    assert seen.events == {}


def test_arming_calls_no_device_function() -> None:
    nfe.uninstall()
    ledger = Ledger()
    torch.npu.synchronize()
    before = ledger.snapshot()
    arm()
    assert (ledger.snapshot() - before).api_calls == 0
    nfe.uninstall()


def test_disarming_while_threads_are_inside_fallbacks_is_safe() -> None:
    x = torch.ones(64).npu()
    expected = torch.lgamma(torch.ones(64))
    stop = threading.Event()
    wrong: list[str] = []

    def work() -> None:
        while not stop.is_set():
            if not torch.equal(torch.lgamma(x).cpu(), expected):
                wrong.append("result")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        arm()
        nfe.uninstall()
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_fake_tensors_count_nothing_and_call_no_device() -> None:
    ledger = Ledger()
    functions = [torch.lgamma, torch.digamma, torch.relu, torch.exp, torch.special.i0e] * 10
    with armed(), measured() as seen, FakeTensorMode():
        before = ledger.snapshot()
        x = torch.ones(4, device="npu")
        for function in functions:
            function(x)
        calls = (ledger.snapshot() - before).api_calls
    assert seen.events == {}
    assert calls == 0


def test_opcheck_says_the_same_armed_and_not(library: torch.library.Library) -> None:
    x = torch.ones(3).npu()

    def check() -> Any:
        return torch.library.opcheck(torch.ops.nfe_test.double.default, (x,), raise_exception=False)

    now, bare = armed_and_not(check)
    assert {test: str(result) for test, result in now.items()} == {
        test: str(result) for test, result in bare.items()
    }


class SmallModel(torch.nn.Module):  # type: ignore[misc] # torch is not followed
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x).relu() + torch.fmax(x, x * 2)


def test_export_gives_the_same_graph_armed_and_not() -> None:
    x = torch.ones(2, 3).npu()

    def export() -> str:
        program = torch.export.export(SmallModel(), (x,))
        return f"{program.graph}\n{program.run_decompositions().graph}"

    now, bare = armed_and_not(export)
    assert now == bare


def test_tracing_gives_the_same_graph_armed_and_not() -> None:
    x = torch.ones(2, 3).npu()
    now, bare = armed_and_not(
        lambda: make_fx(SmallModel(), tracing_mode="fake")(x).print_readable(print_output=False)
    )
    assert now == bare


def aot_graphs(x: torch.Tensor) -> list[str]:
    from functorch.compile import aot_function, make_boxed_func

    graphs: list[str] = []

    def keep(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Any:
        graphs.append(graph.print_readable(print_output=False))
        return make_boxed_func(graph.forward)

    compiled = aot_function(SmallModel().forward, fw_compiler=keep, bw_compiler=keep)
    compiled(x.detach().requires_grad_()).sum().backward()
    return graphs


def test_ahead_of_time_autograd_gives_the_same_graphs_armed_and_not() -> None:
    x = torch.ones(2, 3).npu()
    now, bare = armed_and_not(lambda: aot_graphs(x))
    assert len(now) == 2
    assert now == bare


def test_inductor_lowers_to_the_same_code_armed_and_not() -> None:
    def generated_code() -> list[str]:
        with fresh_dynamo(), torch._inductor.config.patch(force_disable_caches=True):
            _, sources = run_and_get_code(torch.compile(SmallModel()), torch.ones(2, 3))
        # Numbered anew for every compilation.
        return [line for source in sources for line in source.splitlines() if "AOT ID" not in line]

    now, bare = armed_and_not(generated_code)
    assert now
    assert now == bare


@contextmanager
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_compiled_function_is_one_graph_without_breaks_or_recompiles() -> None:
    x = torch.ones(2, 3).npu()
    counter = CompileCounter()
    compiled = torch.compile(SmallModel(), backend=counter, fullgraph=True)
    with fresh_dynamo(), armed(), measured() as seen:
        compiled(x)
        compiled(x)
    assert counter.frame_count == 1
    assert seen.events == {"aten::lgamma.out": 2, "aten::fmax.out": 2}


def test_a_function_that_ran_armed_is_compiled_after_disarming() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x) + 1

    with armed():
        function(torch.ones(2).npu())
    counter = CompileCounter()
    with fresh_dynamo():
        torch.compile(function, backend=counter)(torch.ones(2))
    assert counter.frame_count == 1
