"""Replacements that remedies offer, on the simulated device: same numbers, no fallback.

Each pair is the operator as a user calls it, on the CPU, and what its remedy says, on the NPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

import npu_fallback_exporter as nfe
from tests.support.hooked import armed

Call = Callable[[Tensor, Tensor], Tensor]


@pytest.fixture(autouse=True)
def _armed() -> Iterator[None]:
    with armed():
        yield


def fmax_with_nan(a: Tensor, b: Tensor) -> Tensor:
    a, b = torch.where(torch.isnan(a), b, a), torch.where(torch.isnan(b), a, b)
    return torch.maximum(a, b)


def solve_by_qr(a: Tensor, b: Tensor) -> Tensor:
    q, r = torch.linalg.qr(a)
    return torch.linalg.solve_triangular(r, q.transpose(-1, -2) @ b, upper=True)


def logcumsumexp(x: Tensor, _: Tensor) -> Tensor:
    m = torch.amax(x, 0, keepdim=True)
    return m + torch.log(torch.cumsum(torch.exp(x - m), 0))


def most_frequent(x: Tensor, _: Tensor) -> Tensor:
    values, counts = torch.unique((x * 2).round().flatten(), return_counts=True)
    return values[counts.argmax()]


def spd(x: Tensor) -> Tensor:
    return x @ x.transpose(-1, -2) + 4 * torch.eye(4, device=x.device)


REPLACEMENTS: dict[str, tuple[Call, Call]] = {
    "fmax": (torch.fmax, torch.maximum),
    "fmax of NaN": (
        lambda a, b: torch.fmax(torch.where(a > 0.5, math.nan, a), b),
        lambda a, b: fmax_with_nan(torch.where(a > 0.5, math.nan, a), b),
    ),
    "hypot": (torch.hypot, lambda a, b: torch.sqrt(a * a + b * b)),
    "copysign": (
        lambda a, b: torch.copysign(a, b - 0.5),
        lambda a, b: torch.where(torch.signbit(b - 0.5), -a.abs(), a.abs()),
    ),
    "heaviside": (
        lambda a, b: torch.heaviside(a - 0.5, b),
        lambda a, b: torch.where(a - 0.5 == 0, b, (a - 0.5 > 0).to(a.dtype)),
    ),
    "entr": (lambda a, _: torch.special.entr(a), lambda a, _: -torch.xlogy(a, a)),
    "xlog1py": (torch.special.xlog1py, lambda a, b: a * torch.log1p(b)),
    "log_ndtr": (
        lambda a, _: torch.special.log_ndtr(a),
        lambda a, _: torch.log(0.5 * torch.erfc(-a / 2**0.5)),
    ),
    "ndtri": (
        lambda a, _: torch.special.ndtri(a),
        lambda a, _: 2**0.5 * torch.erfinv(2 * a - 1),
    ),
    "erfcx": (
        lambda a, _: torch.special.erfcx(a),
        lambda a, _: torch.exp(a * a) * torch.erfc(a),
    ),
    "logcumsumexp": (lambda a, _: torch.logcumsumexp(a, 0), logcumsumexp),
    "linalg.inv": (lambda a, _: torch.linalg.inv(spd(a)), lambda a, _: torch.inverse(spd(a))),
    "linalg.solve": (
        lambda a, b: torch.linalg.solve(spd(a), b),
        lambda a, b: solve_by_qr(spd(a), b),
    ),
    "cholesky_ex": (
        lambda a, _: torch.linalg.cholesky_ex(spd(a)).L,
        lambda a, _: torch.linalg.cholesky(spd(a)),
    ),
    "slogdet": (
        lambda a, _: torch.linalg.slogdet(spd(a)).logabsdet,
        lambda a, _: 2 * torch.linalg.cholesky(spd(a)).diagonal().log().sum(),
    ),
    "huber_loss": (
        lambda a, b: F.huber_loss(a, b, delta=0.3),
        lambda a, b: 0.3 * F.smooth_l1_loss(a, b, beta=0.3),
    ),
    "mode": (lambda a, _: torch.mode((a * 2).round().flatten()).values, most_frequent),
    "isin of a number": (
        lambda a, _: torch.isin(a.round(), 1).float(),
        lambda a, _: (a.round() == 1).float(),
    ),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_replacement_gives_the_same_numbers_on_the_npu_without_a_fallback(name: str) -> None:
    operator, replacement = REPLACEMENTS[name]
    generator = torch.Generator().manual_seed(7)
    a, b = (torch.rand(4, 4, generator=generator) * 0.9 + 0.05 for _ in range(2))
    with nfe.forbid_fallback():
        found = replacement(a.npu(), b.npu())
    torch.testing.assert_close(found.cpu(), operator(a, b), rtol=1e-4, atol=1e-5)


def test_the_encoder_takes_no_fallback_once_its_fast_path_is_off() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval().npu()
    tokens = torch.rand(1, 3, 8).npu()
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.inference_mode(), nfe.forbid_fallback():
            layer(tokens)
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda x: torch.ceil(x.exponential_() / -math.log1p(-0.25)), 4.0),
        (lambda x: torch.bernoulli(torch.full_like(x, 0.25).expand(8, -1)).sum(0), 2.0),
        (lambda x: torch.exp(x.normal_(0.5, 0.1)), math.exp(0.5 + 0.005)),
    ],
    ids=["geometric", "binomial", "log_normal"],
)
def test_a_replacement_of_a_sampler_has_its_mean_without_a_fallback(
    draw: Callable[[Tensor], Tensor], mean: float
) -> None:
    torch.manual_seed(3)
    with nfe.forbid_fallback():
        drawn = draw(torch.empty(20_000).npu())
    assert drawn.cpu().mean().item() == pytest.approx(mean, rel=0.05)
