"""``script.py``: run a whole program on the stand-in device."""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from .errors import AuditError
from .program_error import program_error
from .stand_in import NPU

if TYPE_CHECKING:
    from .session import Session


def run(session: Session, path: Path, arguments: Sequence[str]) -> None:
    """Run the program as ``python script.py ARGUMENTS`` would; its output goes to stderr.

    Raises:
        AuditError: it does not come to its end.
    """
    with (
        session.running(),
        session.recording.during("script"),
        contextlib.redirect_stdout(sys.stderr),
        _as_main(path, arguments),
        _cuda_is_the_npu(),
    ):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            if end.code not in {None, 0}:
                raise AuditError(
                    f"{path} ended with exit code {end.code}", "see what it wrote above"
                ) from end
        except AuditError:
            raise
        except Exception as error:
            raise program_error(str(path), error) from error


@contextlib.contextmanager
def _as_main(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    folder = str(path.resolve().parent)
    with (
        mock.patch.object(sys, "argv", [str(path), *arguments]),
        mock.patch.object(sys, "path", [folder, *sys.path]),
    ):
        yield


@contextlib.contextmanager
def _cuda_is_the_npu() -> Iterator[None]:
    """Let a program that asks for CUDA find a device; its tensors are then on the NPU."""
    npu: Any = getattr(torch, NPU)
    names = ("is_available", "device_count", "current_device", "synchronize", "empty_cache")
    with contextlib.ExitStack() as stack:
        for name in (*names, "set_device", "manual_seed", "manual_seed_all"):
            stack.enter_context(mock.patch.object(torch.cuda, name, getattr(npu, name)))
        # Factories show the device to the collector; these two ask for a CUDA driver before.
        moved = _to_npu(torch.Tensor.to)
        stack.enter_context(mock.patch.object(torch.Tensor, "to", moved))
        stack.enter_context(mock.patch.object(torch.Tensor, "cuda", _cuda))
        yield


def _to_npu(original: Callable[..., Any]) -> Callable[..., Any]:
    def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return original(
            tensor,
            *map(_no_cuda, args),
            **{name: _no_cuda(value) for name, value in kwargs.items()},
        )

    return to


def _no_cuda(value: object) -> object:
    if isinstance(value, (str, torch.device)) and torch.device(value).type == "cuda":
        return torch.device(NPU, torch.device(value).index or 0)
    return value


def _cuda(tensor: torch.Tensor, device: Any = None, **kwargs: Any) -> Any:  # noqa: ANN401
    number = device if isinstance(device, int) else torch.device(device or "cuda").index
    kwargs.pop("async", None)
    return tensor.to(torch.device(NPU, number or 0), **kwargs)
