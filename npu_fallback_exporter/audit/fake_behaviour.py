"""What programs do with tensors, and PyTorch's fake tensors do not let them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

if TYPE_CHECKING:
    from .guesses import Guesses


@contextlib.contextmanager
def as_real(guesses: Guesses) -> Iterator[None]:
    """Let fake tensors behave as real ones do inside of the block."""
    replaced = {
        "__deepcopy__": _deep_copy,
        "tolist": lambda tensor: guesses.values_of(tensor).tolist(),
        "numpy": lambda tensor, *, force=False: guesses.values_of(tensor).numpy(force=force),
        "__array__": lambda tensor, *args, **kwargs: guesses.values_of(tensor).__array__(
            *args, **kwargs
        ),
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        stack.enter_context(mock.patch.object(nn.Module, "_apply", _apply))
        for name, function in replaced.items():
            stack.enter_context(mock.patch.object(FakeTensor, name, function, create=True))
        yield


def _apply(module: nn.Module, fn: Callable[[Any], Any], recurse: bool = True) -> nn.Module:
    """Put new parameters in the place of the old; PyTorch would exchange the fakes' insides."""
    if recurse:
        for child in module.children():
            child._apply(fn)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            with torch.no_grad():
                moved = fn(parameter)
            if moved is not parameter:
                module._parameters[name] = nn.Parameter(moved, parameter.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


def _deep_copy(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    copied: torch.Tensor | None = memo.get(id(tensor))
    if copied is None:
        with torch.no_grad():
            copied = tensor.detach().clone()
        if isinstance(tensor, nn.Parameter):
            copied = nn.Parameter(copied, tensor.requires_grad)
        else:
            copied.requires_grad_(tensor.requires_grad)
        memo[id(tensor)] = copied
    return copied
