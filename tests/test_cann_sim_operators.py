"""Operators of the simulated device against the CPU, on views and in several data types.

Both sides compute with the same kernels, in float32 where the device would; so float32 and the
integers agree exactly or to the last bits, and the small floats to their own rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_npu  # noqa: F401 - registers the device
from torch.nn import functional as fn

pytestmark = pytest.mark.usefixtures("ledger")

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32)
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, torch.bool)

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}

Operator = Callable[..., Any]

CASES: dict[str, tuple[Operator, tuple[torch.dtype, ...]]] = {
    "add": (lambda x, y: x + y, NUMBERS),
    "subtract a scaled tensor": (lambda x, y: torch.sub(x, y, alpha=2), NUMBERS),
    "multiply by a number": (lambda x, y: x * 3, NUMBERS),
    "divide": (lambda x, y: x / (y.abs() + 1), NUMBERS),
    "floor divide": (lambda x, y: x // (y.abs() + 1), NUMBERS),
    "remainder": (lambda x, y: x % (y.abs() + 1), NUMBERS),
    "power": (lambda x, y: x**2, NUMBERS),
    "absolute value": (lambda x, y: x.abs(), NUMBERS),
    "exponential": (lambda x, y: x.exp(), FLOATS),
    "inverse root": (lambda x, y: torch.rsqrt(x.abs() + 1), FLOATS),
    "sigmoid": (lambda x, y: x.sigmoid(), FLOATS),
    "clamp": (lambda x, y: x.clamp(-1, 2), NUMBERS),
    "maximum": (torch.maximum, NUMBERS),
    "compare with a tensor": (lambda x, y: x < y, ALL),
    "compare with a number": (lambda x, y: x >= 1, NUMBERS),
    "logical and": (torch.logical_and, ALL),
    "bitwise xor": (lambda x, y: x ^ y, (*INTEGERS, torch.bool)),
    "where": (lambda x, y: torch.where(x > y, x, y), NUMBERS),
    "masked fill": (lambda x, y: x.masked_fill(y > 0, 7), NUMBERS),
    "masked select": (lambda x, y: x[y > 0], NUMBERS),
    "nonzero": (lambda x, y: torch.nonzero(x), ALL),
    "index select": (lambda x, y: x.index_select(0, torch.tensor([2, 0]).to(x.device)), ALL),
    "index with tensors": (lambda x, y: x[torch.tensor([1, 1]).to(x.device)], ALL),
    "gather": (lambda x, y: x.gather(1, torch.ones_like(x, dtype=torch.int64)), ALL),
    "scatter add": (
        lambda x, y: x.clone().scatter_add(1, torch.zeros_like(x, dtype=torch.int64), y),
        NUMBERS,
    ),
    "sum over a dimension": (lambda x, y: x.sum(1), ALL),
    "mean over all": (lambda x, y: x.mean(), FLOATS),
    "variance": (lambda x, y: x.var(0), FLOATS),
    "largest of all": (lambda x, y: x.max(), NUMBERS),
    "largest along a dimension": (lambda x, y: x.amax(-1), NUMBERS),
    "position of the largest": (lambda x, y: x.argmax(-1), FLOATS),
    "any": (lambda x, y: x.any(1), ALL),
    "cumulative sum": (lambda x, y: x.cumsum(1), NUMBERS),
    "sort": (lambda x, y: x.sort(-1).values, FLOATS),
    "top two": (lambda x, y: x.topk(2).values, FLOATS),
    "unique": (lambda x, y: torch.unique(x), INTEGERS),
    "concatenate": (lambda x, y: torch.cat((x, y), 1), ALL),
    "stack": (lambda x, y: torch.stack((x, y)), ALL),
    "flip and roll": (lambda x, y: x.flip(0).roll(1, 1), ALL),
    "lower triangle": (lambda x, y: x.tril(-1), ALL),
    "transpose and copy": (lambda x, y: x.t().contiguous(), ALL),
    "matrix product": (lambda x, y: x @ y.t(), FLOATS),
    "batched product": (lambda x, y: x[None].expand(2, -1, -1) @ y.t()[None], FLOATS),
    "linear with a bias": (lambda x, y: fn.linear(x, y, y[:, 0]), FLOATS),
    "softmax": (lambda x, y: x.softmax(-1), FLOATS),
    "layer norm": (lambda x, y: fn.layer_norm(x, x.shape[-1:], y[0], y[1]), FLOATS),
    "silu": (lambda x, y: fn.silu(x), FLOATS),
    "attention": (
        lambda x, y: fn.scaled_dot_product_attention(x[None], y[None], y[None]),
        FLOATS,
    ),
    "embedding": (lambda x, y: fn.embedding(torch.tensor([[0, 2]]).to(x.device), x), FLOATS),
    "pad": (lambda x, y: fn.pad(x, (1, 2), value=3), NUMBERS),
}

PARAMETERS = [
    pytest.param(operator, dtype, id=f"{name}-{dtype}".replace("torch.", ""))
    for name, (operator, dtypes) in CASES.items()
    for dtype in dtypes
]


def sample(dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(4, 8, generator=generator).to(dtype)
    return torch.randint(-4, 5, (4, 8), generator=generator).to(dtype)


def views(x: torch.Tensor) -> list[torch.Tensor]:
    """Return 4 by 4 views: contiguous, every second column, an offset, transposed."""
    return [x[:, :4].contiguous(), x[:, ::2], x[:, 3:7], x[:, 4:].t()]


def assert_equal(device: torch.Tensor, host: torch.Tensor) -> None:
    tolerance = TOLERANCE.get(host.dtype, 0)
    torch.testing.assert_close(device.cpu(), host, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("operator", "dtype"), PARAMETERS)
def test_the_operator_gives_what_the_cpu_gives_on_every_view(
    operator: Operator, dtype: torch.dtype
) -> None:
    first, second = sample(dtype, 1), sample(dtype, 2)
    on_device = zip(views(first.npu()), views(second.npu()), strict=True)
    on_host = zip(views(first), views(second), strict=True)
    for (x, y), (a, b) in zip(on_device, on_host, strict=True):
        assert_equal(operator(x, y), operator(a, b))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_in_place_operator_changes_the_view_and_nothing_else(dtype: torch.dtype) -> None:
    host = sample(dtype, 1)
    device = host.npu()
    for x in (host, device):
        x[1:3, ::2].mul_(3).add_(1)
    assert_equal(device, host)


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_out_tensor_with_strides_is_filled_through_its_strides(dtype: torch.dtype) -> None:
    x = sample(dtype, 1)
    host, device = torch.zeros(8, 4, dtype=dtype), torch.zeros(8, 4, dtype=dtype).npu()
    torch.exp(x, out=host.t())
    torch.exp(x.npu(), out=device.t())
    assert_equal(device, host)


def test_writing_through_an_index_changes_the_same_elements_as_on_the_cpu() -> None:
    host = sample(torch.float32, 1)
    device = host.npu()
    for x in (host, device):
        rows = torch.tensor([0, 2], device=x.device)
        x[rows, 1:3] = 5
        x[x > 1] = -1
    assert_equal(device, host)


def test_random_numbers_depend_on_the_seed_alone() -> None:
    def draw() -> torch.Tensor:
        torch.manual_seed(3)
        return torch.cat((torch.rand(4, device="npu"), torch.randn(4, device="npu"))).cpu()

    assert torch.equal(draw(), draw())
    torch.manual_seed(3)
    assert not torch.equal(torch.rand(4, device="npu"), torch.rand(4, device="npu"))


def test_dropout_drops_about_its_share_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    kept = fn.dropout(torch.ones(4096, device="npu"), 0.25).cpu()
    assert kept.unique().tolist() == pytest.approx([0, 4 / 3])
    assert 0.7 < (kept > 0).float().mean().item() < 0.8


@pytest.mark.parametrize("samples", [1, 3])
def test_multinomial_never_draws_what_has_no_weight(samples: int) -> None:
    weights = torch.tensor([0.0, 1, 2, 3, 0]).npu()
    for _ in range(20):
        assert set(torch.multinomial(weights, samples).tolist()) <= {1, 2, 3}
