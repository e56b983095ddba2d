"""Calls that torch_npu 2.13 sends to the CPU, one for every shape that arguments can take.

Each is run twice with equal inputs, on the CPU and on the NPU. ``events`` says what the dispatcher
must see of it on the NPU; bytes are what the device's ledger says, and are not written here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        name: what is special about it.
        events: operators that fall back, with how often.
        inputs: makes the inputs on the CPU; they are moved before anything is measured.
        call: takes the device and the inputs, returns what is compared.
    """

    name: str
    events: dict[str, int]
    inputs: Callable[[], tuple[Any, ...]]
    call: Callable[..., Any]

    def __str__(self) -> str:
        return self.name


def one(op: str) -> dict[str, int]:
    return {op: 1}


def values(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return deterministic numbers in (0, 1]."""
    count = int(torch.Size(shape).numel())
    return ((torch.arange(count) * 7 % 13 + 1) / 13).reshape(shape).to(dtype)


def spd(size: int) -> Tensor:
    """Return a symmetric positive definite matrix."""
    root = values(size, size)
    return root @ root.T + size * torch.eye(size)


def unary(op: str, function: Callable[[Tensor], Tensor]) -> Case:
    return Case(op, one(f"aten::{op}.out"), lambda: (values(3, 5),), lambda d, x: function(x))


def binary(op: str, function: Callable[[Tensor, Tensor], Tensor], **kwargs: Any) -> Case:
    return Case(
        op,
        one(f"aten::{op}.out"),
        lambda: (values(2, 3, **kwargs), values(2, 3, **kwargs) + 1),
        lambda d, x, y: function(x, y),
    )


def seeded(function: Callable[[], Any]) -> Any:
    torch.manual_seed(7)
    return function()


def resized_out(device: str, x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty(0, device=device)
    torch.fmax(x, y, out=out)
    return out


SINGLE_TENSORS = [
    binary("fmax", torch.fmax),
    binary("fmin", torch.fmin),
    binary("hypot", torch.hypot),
    binary("copysign", torch.copysign),
    binary("heaviside", torch.heaviside),
    binary("igamma", torch.special.gammainc),
    binary("nextafter", torch.nextafter),
    binary("special_zeta", torch.special.zeta),
    binary("special_xlog1py", torch.special.xlog1py),
    unary("lgamma", torch.lgamma),
    unary("digamma", torch.digamma),
    unary("i0", torch.i0),
    unary("special_i0e", torch.special.i0e),
    unary("special_i1", torch.special.i1),
    unary("special_erfcx", torch.special.erfcx),
    unary("special_entr", torch.special.entr),
    unary("special_ndtri", torch.special.ndtri),
    unary("special_log_ndtr", torch.special.log_ndtr),
    unary("special_airy_ai", torch.special.airy_ai),
    unary("special_bessel_j0", torch.special.bessel_j0),
    Case(
        "float64",
        one("aten::fmax.out"),
        lambda: (values(4, dtype=torch.float64), values(4, dtype=torch.float64)),
        lambda d, x, y: torch.fmax(x, y),
    ),
    Case(
        "bfloat16",
        one("aten::fmax.out"),
        lambda: (values(5, dtype=torch.bfloat16), values(5, dtype=torch.bfloat16) * 2),
        lambda d, x, y: torch.fmax(x, y),
    ),
    Case(
        "int64",
        one("aten::lcm.out"),
        lambda: (torch.arange(1, 9), torch.arange(3, 11)),
        lambda d, x, y: torch.lcm(x, y),
    ),
    Case(
        "a 0-dimensional CPU tensor is not copied",
        one("aten::fmax.out"),
        lambda: (values(2, 3),),
        lambda d, x: torch.fmax(x, torch.tensor(0.5)),
    ),
    Case(
        "a 0-dimensional device tensor is copied",
        one("aten::fmax.out"),
        lambda: (values(2, 3), torch.tensor(0.5)),
        lambda d, x, y: torch.fmax(x, y),
    ),
    Case(
        "arguments that are the same tensor are copied twice",
        one("aten::fmax.out"),
        lambda: (values(2, 3),),
        lambda d, x: torch.fmax(x, x),
    ),
    Case(
        "broadcasting copies what is there",
        one("aten::fmax.out"),
        lambda: (values(4, 1), values(5)),
        lambda d, x, y: torch.fmax(x, y),
    ),
]

VIEWS = [
    Case(
        "a transposed view",
        one("aten::lgamma.out"),
        lambda: (values(3, 5),),
        lambda d, x: torch.lgamma(x.T),
    ),
    Case(
        "every second column",
        one("aten::lgamma.out"),
        lambda: (values(4, 6),),
        lambda d, x: torch.lgamma(x[:, ::2]),
    ),
    Case(
        "an expanded view is copied whole",
        one("aten::lgamma.out"),
        lambda: (values(1, 3),),
        lambda d, x: torch.lgamma(x.expand(4, 3)),
    ),
    Case(
        "in-place on a strided view",
        one("aten::lgamma.out"),
        lambda: (values(4, 6),),
        lambda d, x: (x[:, ::2].lgamma_(), x)[1],
    ),
]

EMPTY = [
    Case(
        "0 elements are an event without transfers",
        one("aten::lgamma.out"),
        lambda: (torch.empty(0),),
        lambda d, x: torch.lgamma(x),
    ),
    Case(
        "0 elements of one of two arguments",
        one("aten::fmax.out"),
        lambda: (torch.empty(0, 3), values(1, 3)),
        lambda d, x, y: torch.fmax(x, y),
    ),
]

OUT_AND_IN_PLACE = [
    Case(
        "out= of the right size",
        one("aten::fmax.out"),
        lambda: (values(2, 3), values(2, 3) * 2, torch.zeros(2, 3)),
        lambda d, x, y, out: torch.fmax(x, y, out=out),
    ),
    Case(
        "out= that is resized comes back in its new size",
        one("aten::fmax.out"),
        lambda: (values(2, 3), values(2, 3) * 2),
        resized_out,
    ),
    Case(
        "in-place",
        one("aten::digamma.out"),
        lambda: (values(7),),
        lambda d, x: x.digamma_(),
    ),
    Case(
        "in-place random numbers",
        one("aten::cauchy_"),
        lambda: (values(7),),
        lambda d, x: seeded(lambda: x.cauchy_()),
    ),
    Case(
        "in-place geometric numbers",
        one("aten::geometric_"),
        lambda: (values(7),),
        lambda d, x: seeded(lambda: x.geometric_(0.3)),
    ),
    Case(
        "two out= tensors",
        one("aten::nanmedian.dim_values"),
        lambda: (values(3, 5), torch.zeros(3), torch.zeros(3, dtype=torch.int64)),
        lambda d, x, v, i: aten.nanmedian.dim_values(x, 1, False, values=v, indices=i),
    ),
]

SEVERAL_RESULTS = [
    Case("mode", one("aten::mode"), lambda: (values(3, 5),), lambda d, x: torch.mode(x, 1)),
    Case(
        "frexp",
        one("aten::frexp.Tensor_out"),
        lambda: (values(6), torch.zeros(6), torch.zeros(6, dtype=torch.int32)),
        lambda d, x, m, e: aten.frexp.Tensor_out(x, mantissa=m, exponent=e),
    ),
    Case(
        "inverse",
        one("aten::linalg_inv_ex.inverse"),
        lambda: (spd(4),),
        lambda d, x: torch.linalg.inv_ex(x),
    ),
    Case(
        "cholesky_ex",
        one("aten::linalg_cholesky_ex.L"),
        lambda: (spd(4),),
        lambda d, x: torch.linalg.cholesky_ex(x),
    ),
    Case("determinant", one("aten::_linalg_det.result"), lambda: (spd(3),), lambda d, x: x.det()),
    Case(
        "solve",
        one("aten::_linalg_solve_ex.result"),
        lambda: (spd(4), values(4, 2)),
        lambda d, a, b: torch.linalg.solve_ex(a, b),
    ),
    Case(
        "eigenvalues of a symmetric matrix",
        one("aten::_linalg_eigh.eigenvalues"),
        lambda: (spd(4),),
        lambda d, x: torch.linalg.eigvalsh(x),
    ),
    Case(
        "histogram with weights",
        one("aten::histogram.bin_ct"),
        lambda: (values(20), values(20)),
        lambda d, x, w: torch.histogram(x, 4, range=(0.0, 1.0), weight=w),
    ),
    Case(
        "unique rows in a row",
        one("aten::unique_dim_consecutive"),
        lambda: (torch.tensor([[1, 2], [1, 2], [3, 4]]),),
        lambda d, x: aten.unique_dim_consecutive(x, 0, True, True),
    ),
    Case(
        "a result that is not a tensor",
        one("aten::_assert_async"),
        lambda: (torch.tensor(True),),
        lambda d, x: aten._assert_async(x),
    ),
]

LISTS_AND_OPTIONALS = [
    Case(
        "a list of tensors",
        {"aten::lgamma.out": 3},
        lambda: ([values(2), values(3), values(4)],),
        lambda d, xs: aten._foreach_lgamma(xs),
    ),
    Case(
        "lists that are written",
        one("aten::_fused_adagrad_"),
        lambda: (
            [values(3), values(2, 2)],
            [values(3), values(2, 2)],
            [values(3), values(2, 2)],
            [torch.tensor(1.0), torch.tensor(1.0)],
        ),
        lambda d, p, g, s, t: (
            aten._fused_adagrad_(
                p, g, s, t, lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=False
            ),
            p,
            s,
        )[1:],
    ),
    Case(
        "a list of bins",
        one("aten::_histogramdd_from_bin_tensors"),
        lambda: (values(8, 2), [torch.linspace(0, 1, 4), torch.linspace(0, 1, 3)]),
        lambda d, x, bins: aten._histogramdd_from_bin_tensors(x, bins),
    ),
    Case(
        "results in a list",
        one("aten::_histogramdd_bin_edges"),
        lambda: (values(8, 2),),
        lambda d, x: aten._histogramdd_bin_edges(x, [3, 2]),
    ),
    Case(
        "a list of optional tensors",
        one("aten::index.Tensor_out"),
        lambda: (values(4, 5), torch.tensor([3, 1]), torch.zeros(4, 2)),
        lambda d, x, i, out: aten.index.Tensor_out(x, [None, i], out=out),
    ),
    Case(
        "optional tensors that are there",
        one("aten::_native_batch_norm_legit.out"),
        lambda: (
            *(values(2, 3, 4), values(3), values(3), torch.zeros(3), torch.ones(3)),
            *(torch.zeros(2, 3, 4), torch.zeros(3), torch.zeros(3)),
        ),
        lambda d, x, w, b, m, v, o, sm, si: (
            aten._native_batch_norm_legit.out(
                x, w, b, m, v, True, 0.1, 1e-5, out=o, save_mean=sm, save_invstd=si
            ),
            m,
            v,
        ),
    ),
    Case(
        "an optional tensor that is not there",
        one("aten::multi_margin_loss"),
        lambda: (values(3, 4), torch.tensor([1, 0, 3])),
        lambda d, x, y: torch.nn.functional.multi_margin_loss(x, y),
    ),
]

NO_TENSOR_ARGUMENT = [
    Case(
        "no tensor argument",
        one("aten::_make_dep_token"),
        lambda: (),
        lambda d: aten._make_dep_token(device=d).shape,  # its value means nothing
    ),
]

OTHERS = [
    Case(
        "poisson",
        one("aten::poisson"),
        lambda: (values(9),),
        lambda d, x: seeded(lambda: torch.poisson(x)),
    ),
    Case(
        "binomial",
        one("aten::binomial"),
        lambda: (values(9) * 10, values(9) / 2),
        lambda d, n, p: seeded(lambda: torch.binomial(n.floor(), p)),
    ),
    Case(
        "gamma samples",
        one("aten::_standard_gamma"),
        lambda: (values(9),),
        lambda d, x: seeded(lambda: torch._standard_gamma(x)),
    ),
    Case(
        "logcumsumexp",
        one("aten::_logcumsumexp"),
        lambda: (values(3, 5),),
        lambda d, x: torch.logcumsumexp(x, 1),
    ),
    Case(
        "huber loss",
        one("aten::huber_loss"),
        lambda: (values(5), values(5) * 3),
        lambda d, x, y: torch.nn.functional.huber_loss(x, y),
    ),
    Case(
        "matrix exponential",
        one("aten::linalg_matrix_exp"),
        lambda: (values(3, 3),),
        lambda d, x: torch.linalg.matrix_exp(x),
    ),
]

CASES = [
    *SINGLE_TENSORS,
    *VIEWS,
    *EMPTY,
    *OUT_AND_IN_PLACE,
    *SEVERAL_RESULTS,
    *LISTS_AND_OPTIONALS,
    *NO_TENSOR_ARGUMENT,
    *OTHERS,
]
