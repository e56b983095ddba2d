"""Where an operator was called from: the path of the module, and the program's line."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

_UNKNOWN = "no Python frame, as in autograd's threads"


@dataclass(frozen=True, order=True)
class CallSite:
    """One place that calls an operator.

    Attributes:
        module: path of the innermost module, as ``Net.encoder.layers.0``; empty outside of any.
        line: ``file:line in function`` of the innermost frame that is not PyTorch's; where every
            frame is, PyTorch's own innermost module.
    """

    module: str
    line: str


class ModulePath:
    """Knows the path of the module that is running, from PyTorch's hooks on every module."""

    def __init__(self) -> None:
        self._running: list[tuple[nn.Module, str]] = []

    def __str__(self) -> str:
        return self._running[-1][1] if self._running else ""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow the modules that run inside of the block."""
        from torch.nn.modules import module

        before = module.register_module_forward_pre_hook(self._enter)
        after = module.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()
            self._running.clear()

    def _enter(self, module: nn.Module, _args: object) -> None:
        self._running.append((module, self._path(module)))

    def _leave(self, module: nn.Module, _args: object, _result: object) -> None:
        # A module that raised in a hook before ours may have left none of its own.
        while self._running and self._running.pop()[0] is not module:
            pass

    def _path(self, module: nn.Module) -> str:
        for outer, path in reversed(self._running):
            for name, inner in outer.named_modules():
                if inner is module and name:
                    return f"{path}.{name}"
        own = type(module).__name__
        return f"{self}.{own}" if self._running else own


class Lines:
    """Finds the program's line on the stack.

    Args:
        skipped: folders whose frames are not the program's.
    """

    def __init__(self, skipped: tuple[str, ...]) -> None:
        self._skipped = skipped
        self._own = str(Path(__file__).parent)
        self._modules = str(Path("torch") / "nn" / "modules")

    def current(self) -> str:
        """Return ``file:line in function`` of the innermost frame of the program."""
        inner_module = _UNKNOWN
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self._skipped):
                if inner_module is _UNKNOWN and self._modules in name:
                    inner_module = _text(frame)
            elif not name.startswith((self._own, "<")):
                return inner_module if _is_the_commands(frame) else _text(frame)
            frame = frame.f_back
        return inner_module


def _is_the_commands(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("npu_fallback_exporter.")


def _text(frame: FrameType) -> str:
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"


@functools.cache
def _short(file: str) -> str:
    """Without what differs from machine to machine: the folder of the packages, or our own."""
    installed = file.rpartition("site-packages/")[2]
    if installed != file:
        return installed
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file
