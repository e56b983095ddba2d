"""Values of the tensors that the audit can know, so that what a program reads from them is right.

Fake tensors have shapes and no values. Programs ask for values all the same: how long a mask is,
whether all entries are valid, how many boxes are left. So beside a fake tensor the audit keeps,
where it is small, a tensor of the CPU with the values that it would have, computed from those of
its inputs by the same operators. A tensor whose inputs are not all known is unknown, and what is
written from the unknown makes the written memory unknown.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .event_bytes import written_tensors

_ATTRIBUTE = "_audit_value"
MOST_BYTES = 16 << 20  # of one tensor whose values are followed


class _Memory:
    """Memory of known values; it becomes unknown as a whole."""

    def __init__(self) -> None:
        self.known = True


class _Value:
    def __init__(self, tensor: torch.Tensor, memory: _Memory) -> None:
        self.tensor = tensor
        self.memory = memory


class Values:
    """The values known so far."""

    def __init__(self) -> None:
        self._memories: weakref.WeakValueDictionary[int, _Memory] = weakref.WeakValueDictionary()

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return the values of a tensor, on the CPU; None when they are unknown."""
        if not isinstance(tensor, FakeTensor):
            return tensor if tensor.device.type == "cpu" and _bytes(tensor) <= MOST_BYTES else None
        value: _Value | None = getattr(tensor, _ATTRIBUTE, None)
        if value is None or not value.memory.known or tensor.layout != torch.strided:
            return None
        return value.tensor if value.tensor.shape == tensor.shape else None

    def keep(self, fake: object, real: object) -> None:
        """Remember results of an operator, of the same structure, as the values of the fakes."""
        if isinstance(fake, FakeTensor) and isinstance(real, torch.Tensor):
            if fake.shape == real.shape and fake.dtype == real.dtype:
                setattr(fake, _ATTRIBUTE, _Value(real, self._memory_of(real)))
        elif isinstance(fake, (list, tuple)) and isinstance(real, (list, tuple)):
            for one, other in zip(fake, real, strict=False):
                self.keep(one, other)

    def follow(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[object],
        kwargs: Mapping[str, object],
        result: object,
    ) -> None:
        """Compute what an operator has just done to fakes, with the values of its inputs."""
        if not self._follows(args, kwargs, result):
            self.forget(func, args, kwargs)
            return
        try:
            real = self.compute(func, args, kwargs)
        except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
            # The CPU cannot do it, in this data type for one: then nobody knows the values.
            self.forget(func, args, kwargs)
            return
        if isinstance(real, torch.Tensor) and _is_uninitialised(func):
            real.zero_()
        self.keep(result, real)

    def compute(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Run an operator on the CPU with the values of its inputs, which must all be known."""
        return run_on_cpu(func, args, kwargs, self._value_or_self)

    def known(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
        """Whether the values of all tensors among the arguments are known."""
        return all(self.of(tensor) is not None for tensor in tensors_in((*args, *kwargs.values())))

    def forget(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> None:
        """Make the memory that an operator writes into unknown."""
        for tensor in written_tensors(func._schema, args, kwargs):
            self.forget_tensor(tensor)

    def forget_tensor(self, tensor: torch.Tensor) -> None:
        """Make the memory of a tensor, and so all of its views, unknown."""
        value: _Value | None = getattr(tensor, _ATTRIBUTE, None)
        if value is not None:
            value.memory.known = False

    def _follows(
        self, args: Sequence[object], kwargs: Mapping[str, object], result: object
    ) -> bool:
        if any(_bytes(tensor) > MOST_BYTES for tensor in tensors_in((result,))):
            return False
        return self.known(args, kwargs)

    def _value_or_self(self, tensor: torch.Tensor) -> torch.Tensor:
        return cast("torch.Tensor", self.of(tensor))

    def _memory_of(self, real: torch.Tensor) -> _Memory:
        if real.layout != torch.strided:
            return _Memory()
        key = real.untyped_storage()._cdata
        memory = self._memories.get(key)
        if memory is None or not memory.known:
            memory = self._memories[key] = _Memory()
        return memory


def run_on_cpu(
    func: Any,  # noqa: ANN401 - torch._ops.OpOverload
    args: Sequence[object],
    kwargs: Mapping[str, object],
    real: Any,  # noqa: ANN401 - Callable[[Tensor], Tensor]
) -> object:
    """Run an operator outside of all modes, with `real` of its tensors, on the CPU."""

    def translate(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return real(value).detach()
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, (list, tuple)):
            return [translate(item) for item in value]
        return value

    with _disable_current_modes(), torch.no_grad():
        return func(
            *(translate(value) for value in args),
            **{name: translate(value) for name, value in kwargs.items()},
        )


def tensors_in(values: Sequence[object]) -> Iterator[torch.Tensor]:
    """Yield the tensors in arguments or results, lists included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def _is_uninitialised(func: Any) -> bool:  # noqa: ANN401 - torch._ops.OpOverload
    return bool(func._schema.name.startswith(("aten::empty", "aten::new_empty")))


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())
