"""The sample inputs that a specification stands for."""

from __future__ import annotations

import torch

from .input_spec import InputSpec


def sample(spec: InputSpec) -> torch.Tensor:
    """Return an input on the CPU, of random numbers of PyTorch's global generator."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if spec.values is not None:
        low, high = spec.values
        if dtype.is_floating_point:
            return torch.empty(spec.shape, dtype=dtype).uniform_(low, high)
        return torch.randint(int(low), int(high) + 1, spec.shape).to(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(spec.shape, dtype=dtype)
    return torch.ones(spec.shape, dtype=dtype)
