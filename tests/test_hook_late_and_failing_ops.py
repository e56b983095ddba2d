"""Operators that are defined after arming, that have no CPU kernel, or that are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument.arming import hook
from npu_fallback_exporter.pages.model import Page
from npu_fallback_exporter.pages.page import read_page
from tests.support.hooked import arm, armed, measured


@pytest.fixture(autouse=True)
def _armed() -> Iterator[None]:
    with armed():
        yield


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    library = torch.library.Library("nfe_late", "DEF")
    yield library
    library._destroy()


@pytest.fixture
def nms() -> Iterator[None]:
    """Stand in for torchvision, which does not load beside this build of PyTorch."""
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", lambda dets, scores, threshold: scores.argsort(descending=True), "CPU")
    yield
    library._destroy()


def page() -> Page:
    armed_hook = hook()
    assert armed_hook is not None
    return read_page(str(armed_hook.page_path)).page


@pytest.mark.usefixtures("nms")
def test_a_library_operator_defined_after_arming_is_counted() -> None:
    boxes, scores = torch.rand(300, 4).npu(), torch.rand(300).npu()
    x = torch.rand(1024, 1024).npu()
    with measured() as seen:
        for _ in range(200):
            torch.ops.torchvision.nms(boxes, scores, 0.5)
            x.relu()
    assert seen.events == {"torchvision::nms": 200}
    assert seen.bytes == seen.ledger_bytes == (200 * (300 * 4 + 300) * 4, 200 * 300 * 8)


def test_an_operator_that_gets_its_npu_kernel_after_its_definition_is_no_event(
    library: torch.library.Library,
) -> None:
    library.define("soon(Tensor x) -> Tensor")
    library.impl("soon", lambda x: x + 1, "CPU")
    library.impl("soon", lambda x: x + 2, "PrivateUse1")
    with measured() as seen:
        result = torch.ops.nfe_late.soon(torch.zeros(2).npu())
    assert result.tolist() == [2.0, 2.0]
    assert seen.events == {}


def test_an_operator_that_is_composite_after_its_definition_is_no_event(
    library: torch.library.Library,
) -> None:
    library.define("composite(Tensor x) -> Tensor")
    library.impl("composite", lambda x: x + 1, "CompositeImplicitAutograd")
    with measured() as seen:
        torch.ops.nfe_late.composite(torch.zeros(2).npu())
    assert seen.events == {}


def test_an_operator_defined_later_joins_those_that_are_watched(
    library: torch.library.Library,
) -> None:
    before = page()
    library.define("watched(Tensor x) -> Tensor")
    library.impl("watched", lambda x: x + 1, "CPU")
    torch.ops.nfe_late.watched(torch.zeros(2).npu())
    assert page().watched_with_cpu_kernel == before.watched_with_cpu_kernel + 1


def test_what_is_watched_is_what_the_dispatcher_says_ends_in_the_fallback() -> None:
    before_the_fallback = (
        "PrivateUse1",
        "CompositeExplicitAutogradNonFunctional",
        "CompositeExplicitAutograd",
        "CompositeImplicitAutograd",
    )
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [
        name
        for name in torch._C._dispatch_get_all_op_names()
        if torch._C._dispatch_has_kernel(name)
        and not any(has(name, key) for key in before_the_fallback)
    ]
    arm()  # counts anew
    assert page().watched_with_cpu_kernel == sum(has(name, "CPU") for name in names)


def define_without_cpu_kernel(library: torch.library.Library, schema: str) -> None:
    name = schema.split("(")[0]
    library.define(schema)
    library.impl(name, lambda x: torch.empty_like(x), "Meta")


def raised_by(function: object) -> BaseException:
    assert callable(function)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - compared below
        function(torch.zeros(2).npu())
    return caught.value


@pytest.mark.parametrize("schema", ["bare(Tensor x) -> Tensor", "mutate(Tensor(a!) x) -> Tensor"])
def test_an_operator_without_cpu_kernel_is_an_error_and_no_event(
    library: torch.library.Library, schema: str
) -> None:
    define_without_cpu_kernel(library, schema)
    name = schema.split("(")[0]
    with measured() as seen:
        raised_by(getattr(torch.ops.nfe_late, name))
        torch.lgamma(torch.zeros(2).npu())
    assert seen.errors == {f"nfe_late::{name}": 1}
    assert seen.events == {"aten::lgamma.out": 1}


def test_the_error_of_an_operator_without_cpu_kernel_is_unchanged(
    library: torch.library.Library,
) -> None:
    define_without_cpu_kernel(library, "bare(Tensor x) -> Tensor")
    now = raised_by(torch.ops.nfe_late.bare)
    nfe.uninstall()
    bare = raised_by(torch.ops.nfe_late.bare)
    assert type(now) is type(bare)
    assert without_time(now) == without_time(bare)


def without_time(error: BaseException) -> list[str]:
    """Drop torch_npu's line with time and process id."""
    return [line for line in str(error).splitlines() if not line.startswith("[ERROR]")]


def test_a_computation_that_raises_on_the_cpu_is_an_error_with_its_own_text() -> None:
    x = torch.ones(2, 3).npu()
    with measured() as seen, pytest.raises(RuntimeError, match="size of tensor"):
        torch.fmax(x, torch.ones(5).npu())
    # The sizes are looked at before the operator reaches the fallback.
    assert seen.events == {}
    with measured() as seen, pytest.raises(RuntimeError):
        torch.linalg.cholesky_ex(-torch.eye(3).npu(), check_errors=True)
    assert seen.events == {}
    assert seen.errors == {"aten::linalg_cholesky_ex.L": 1}


def test_strict_mode_refuses_before_anything_is_copied() -> None:
    x = torch.ones(3).npu()
    arm("strict")
    with (
        measured() as seen,
        pytest.raises(RuntimeError, match=r"refuses aten::lgamma\.out on npu:0:"),
    ):
        torch.lgamma(x)
    assert (seen.events, seen.blocked) == ({}, {"aten::lgamma.out": 1})
    assert seen.ledger_bytes == (0, 0)


def test_strict_mode_refuses_no_operator_with_an_npu_kernel() -> None:
    arm("strict")
    assert (torch.ones(3).npu() + 1).cpu().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.usefixtures("nms")
def test_strict_mode_lets_through_what_the_list_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPU_FALLBACK_ALLOW", "torchvision::nms")
    boxes, scores = torch.rand(4, 4).npu(), torch.rand(4).npu()
    arm("strict")
    with measured() as seen:
        torch.ops.torchvision.nms(boxes, scores, 0.5)
        with pytest.raises(RuntimeError, match=r"NPU_FALLBACK_ALLOW=aten::lgamma\.out"):
            torch.lgamma(scores)
    assert seen.events == {"torchvision::nms": 1}
    assert seen.blocked == {"aten::lgamma.out": 1}


def test_a_python_name_in_the_allow_list_stands_for_its_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NPU_FALLBACK_ALLOW", "torch.lgamma, torch.special.i0e")
    x = torch.ones(3).npu()
    arm("strict")
    with measured() as seen:
        torch.lgamma(x)
        torch.special.i0e(x)
    assert seen.events == {"aten::lgamma.out": 1, "aten::special_i0e.out": 1}
