"""Calls whose NPU kernel computes on the host when the simulation hides an aclnn symbol.

Run as a program, it prints one JSON object per line: what the page and the ledger say of each
call, and whether the result is the CPU's. Symbols are hidden when the simulated library is
loaded, so the tests run it in a process with ``CANN_SIM_HIDE``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from tests.support.fallback_cases import values

aten = torch.ops.aten


@dataclass(frozen=True)
class ExplicitCase:
    """One call.

    Attributes:
        op: the overload that is an event.
        hides: aclnn symbols without which it computes on the host; empty: it always does.
        inputs: makes the inputs on the CPU.
        call: takes the inputs.
    """

    op: str
    hides: tuple[str, ...]
    inputs: Callable[[], tuple[Any, ...]]
    call: Callable[..., Any]


def sparse() -> Tensor:
    return torch.eye(4).to_sparse_csr()


def image(*shape: int) -> tuple[Tensor]:
    return (values(*shape),)


def exact(size: int | list[int]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.nn.functional.interpolate(x, size=size, mode="nearest-exact")


CASES = [
    ExplicitCase("aten::_sparse_csr_sum.dim_dtype", (), lambda: (sparse(),),
                 lambda x: torch._sparse_csr_sum(x, [0], True)),
    ExplicitCase("aten::_sparse_csr_prod.dim_dtype", (), lambda: (sparse(),),
                 lambda x: torch._sparse_csr_prod(x, [0], True)),
    ExplicitCase("aten::logit", ("Logit",), lambda: image(3, 5), lambda x: torch.logit(x * 0.9)),
    ExplicitCase("aten::logit.out", ("Logit",), lambda: image(3, 5),
                 lambda x: aten.logit_(x * 0.9)),
    ExplicitCase("aten::_upsample_nearest_exact1d", ("UpsampleNearestExact1d",),
                 lambda: image(1, 2, 5), exact(7)),
    ExplicitCase("aten::_upsample_nearest_exact2d", ("UpsampleNearestExact2d",),
                 lambda: image(1, 2, 4, 4), exact([6, 6])),
    ExplicitCase("aten::_upsample_nearest_exact3d", ("UpsampleNearestExact3d",),
                 lambda: image(1, 2, 3, 3, 3), exact([4, 4, 4])),
    ExplicitCase("aten::_masked_softmax", (),
                 lambda: (values(3, 5), values(3, 5) > 0.5),
                 lambda x, m: torch._masked_softmax(x, m, 1, 0)),
    ExplicitCase("aten::unfold_backward", ("UnfoldGrad",), lambda: image(2, 3, 2),
                 lambda x: aten.unfold_backward(x, [2, 4], 1, 2, 1)),
    ExplicitCase("aten::var.correction", (), lambda: image(3, 5),
                 lambda x: torch.var(x, 1, correction=0.5)),
    ExplicitCase("aten::std.correction", (), lambda: image(3, 5),
                 lambda x: torch.std(x, 1, correction=0.5)),
    ExplicitCase("aten::var_mean.correction", (), lambda: image(3, 5),
                 lambda x: torch.var_mean(x, 1, correction=0.5)),
    ExplicitCase("aten::std_mean.correction", (), lambda: image(3, 5),
                 lambda x: torch.std_mean(x, 1, correction=0.5)),
    ExplicitCase("aten::adaptive_max_pool3d", (),
                 lambda: (values(1, 2, 4, 4, 4, dtype=torch.float64),),
                 lambda x: torch.nn.functional.adaptive_max_pool3d(x, 2)),
    ExplicitCase("aten::polar", ("Polar",), lambda: (values(4), values(4)),
                 torch.polar),
    ExplicitCase("aten::complex", ("Complex",), lambda: (values(4), values(4)),
                 torch.complex),
    ExplicitCase("aten::nanmedian", ("NanMedian",), lambda: image(3, 5), torch.nanmedian),
    ExplicitCase("aten::nanmedian.dim", ("NanMedianDim",), lambda: image(3, 5),
                 lambda x: torch.nanmedian(x, 1)),
    ExplicitCase("aten::sinc", ("Sinc",), lambda: image(3, 5), torch.sinc),
    ExplicitCase("aten::sinc_", ("InplaceSinc",), lambda: image(3, 5), lambda x: x.sinc_()),
    ExplicitCase("aten::gcd.out", ("Gcd",),
                 lambda: (torch.arange(1, 7), torch.arange(4, 10)), torch.gcd),
    ExplicitCase("aten::isneginf.out", ("IsNegInf",), lambda: image(5), torch.isneginf),
    ExplicitCase("aten::isposinf.out", ("IsPosInf",), lambda: image(5), torch.isposinf),
    ExplicitCase("aten::isin.Tensor_Scalar", ("IsInTensorScalar",), lambda: (torch.arange(5),),
                 lambda x: torch.isin(x, 3)),
    ExplicitCase("aten::scatter_reduce.two", (),
                 lambda: (values(3, 4), torch.zeros(3, 4, dtype=torch.int64)),
                 lambda x, i: x.scatter_reduce(0, i, x, "amax")),
    ExplicitCase("aten::scatter_reduce_.two", (),
                 lambda: (values(3, 4), torch.zeros(3, 4, dtype=torch.int64)),
                 lambda x, i: x.clone().scatter_reduce_(0, i, x, "amax")),
    ExplicitCase("aten::_upsample_bilinear2d_aa", ("UpsampleBilinear2dAA",),
                 lambda: image(1, 2, 4, 4),
                 lambda x: aten._upsample_bilinear2d_aa(x, [3, 3], False, None, None)),
    ExplicitCase("aten::_upsample_bicubic2d_aa", ("UpsampleBicubic2dAA",),
                 lambda: image(1, 2, 4, 4),
                 lambda x: aten._upsample_bicubic2d_aa(x, [3, 3], False, None, None)),
]  # fmt: skip

#: Every symbol that a case wants hidden, for CANN_SIM_HIDE.
HIDDEN = ",".join(sorted({f"aclnn{symbol}" for case in CASES for symbol in case.hides}))


def is_close(result: Any, expected: Any) -> bool:
    def plain(tensor: Tensor) -> Tensor:
        tensor = tensor.cpu()
        return tensor.to_dense() if tensor.layout is torch.sparse_csr else tensor

    pairs = zip(pytree.tree_leaves(result), pytree.tree_leaves(expected), strict=True)
    return all(
        a.shape == b.shape
        and torch.allclose(plain(a), plain(b), rtol=1e-4, atol=1e-5, equal_nan=True)
        for a, b in pairs
    )


def main() -> None:
    from tests.support.hooked import arm, measured

    arm()
    for case in CASES:
        expected = case.call(*case.inputs())
        inputs = [tensor.npu() for tensor in case.inputs()]
        with measured() as seen:
            result = case.call(*inputs)
        line = asdict(seen)
        line["op"] = case.op
        line["ledger_bytes"] = list(seen.ledger_bytes)
        line["same"] = is_close(result, expected)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
