"""Watches every operator at the place where the dispatcher would call the NPU's kernel.

Tensors are PyTorch's fake tensors with the device ``npu``: they have its dispatch keys, so autograd
and composite operators behave as they do there, and the mode below sees what would reach the NPU's
key. What the key does with it is looked up. A composite operator is taken apart by calling the very
kernel that the dispatcher would call, so structured operators end in the overload that the NPU sees
(``aten::fmax`` in ``aten::fmax.out``), and list operators in one call per tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode

from .event_bytes import bytes_to_device, bytes_to_host
from .guesses import Guesses
from .routes import Way
from .stand_in import NPU
from .values import tensors_in

if TYPE_CHECKING:
    from .recording import Recording
    from .routes import Routes
    from .values import Values

_NEEDS_VALUES = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
    NotImplementedError,
)


class Collector(TorchDispatchMode):  # type: ignore[misc]
    """Records the operators that run inside of the block; a fake mode must be active around it."""

    def __init__(self, routes: Routes, values: Values, recording: Recording) -> None:
        super().__init__()
        self._routes = routes
        self._values = values
        self._recording = recording
        self.guesses = Guesses(values, recording)

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Record one operator and return what it would."""
        if func.namespace == "prim":  # a question about a tensor, such as its device
            return func(*args, **(kwargs or {}))
        named = _on_the_npu(kwargs) if kwargs else {}
        if func is torch.ops.aten._local_scalar_dense.default:
            if _reaches_npu(args, named):
                self._recording.operator(func.name())
            return self.guesses.scalar(args[0])
        if not _reaches_npu(args, named):
            return self._result(func, args, named)
        decision = self._routes.of(func)
        if decision.way is Way.COMPOSITE:
            with self:
                result = func._op_dk(decision.kernel, *args, **named)
            if all(isinstance(tensor, FakeTensor) for tensor in tensors_in((result,))):
                return result
            # A view that the kernel made without the dispatcher, and so no fake.
            return self._result(func, args, named)
        if decision.way is Way.KERNEL:
            self._recording.operator(func.name())
            return self._result(func, args, named)
        to_host = bytes_to_host(args, named)
        result = self._result(func, args, named)
        to_device = bytes_to_device(func._schema, args, named, result)
        self._recording.finding(func.name(), decision, to_host, to_device)
        return result

    def _result(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> object:
        try:
            result = func(*args, **kwargs)
        except _NEEDS_VALUES as error:
            return self.guesses.result(func, args, kwargs, error)
        self._values.follow(func, args, kwargs, result)
        self.guesses.remember(func, result)
        return result


def _reaches_npu(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the dispatcher would take the NPU's key: for a tensor, or for where one is made."""
    has_tensor = False
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                if item.device.type == NPU:
                    return True
                has_tensor = True
    return not has_tensor and _device_type(kwargs.get("device")) == NPU


def _on_the_npu(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with the NPU in the place of CUDA, for programs written for that."""
    named = dict(kwargs)
    if _device_type(named.get("device")) == "cuda":
        named["device"] = torch.device(NPU, torch.device(named["device"]).index or 0)
    return named


def _device_type(device: object) -> str:
    return torch.device(device).type if isinstance(device, (str, torch.device)) else ""


class _FakeMode(FakeTensorMode):  # type: ignore[misc]
    #: Of constants that a program moves to the device: show the move to the modes, do not make it.
    avoid_device_init = True


def fake_mode() -> FakeTensorMode:
    """Return a fake mode that takes real tensors too and runs no kernel to learn shapes."""
    return _FakeMode(allow_fallback_kernels=False, allow_non_fake_inputs=True)
