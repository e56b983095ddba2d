"""Python functions whose C++ code takes another way when it sees fake tensors.

PyTorch's code asks here and there whether a tensor is of a subclass, and is then more careful than
in eager: it computes eigenvectors that nobody wants. These functions call what eager calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

_aten = torch.ops.aten


@contextlib.contextmanager
def as_in_eager() -> Iterator[None]:
    """Put the functions below in the place of PyTorch's."""
    with (
        mock.patch.object(torch.linalg, "eigvals", _eigvals(torch.linalg.eigvals)),
        mock.patch.object(torch.linalg, "eigvalsh", _eigvalsh(torch.linalg.eigvalsh)),
    ):
        yield


def _needs_gradient(tensor: torch.Tensor) -> bool:
    return bool(tensor.requires_grad and torch.is_grad_enabled())


def _eigvals(original: Callable[..., Any]) -> Callable[..., Any]:
    def eigvals(A: torch.Tensor, **kwargs: Any) -> Any:  # noqa: ANN401, N803 - PyTorch's name
        if kwargs or _needs_gradient(A):
            return original(A, **kwargs)
        return _aten._linalg_eigvals(A)

    return eigvals


def _eigvalsh(original: Callable[..., Any]) -> Callable[..., Any]:
    def eigvalsh(A: torch.Tensor, UPLO: str = "L", **kwargs: Any) -> Any:  # noqa: ANN401, N803
        if kwargs or _needs_gradient(A):
            return original(A, UPLO, **kwargs)
        return _aten._linalg_eigh(A, UPLO, False)[0]

    return eigvalsh
