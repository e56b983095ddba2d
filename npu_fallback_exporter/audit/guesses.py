"""What the audit assumes where fake tensors do not say: values, sizes that depend on data, and
shapes of operators that have no fake kernel. Each is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .errors import AuditError
from .event_bytes import npu_tensors, written_tensors
from .values import run_on_cpu, tensors_in

if TYPE_CHECKING:
    from .recording import Recording
    from .values import Values

_MOST_BYTES = 512 << 20  # of all inputs of one operator that is tried on made-up values


class Guesses:
    """Answers for what the shapes alone do not tell."""

    def __init__(self, values: Values, recording: Recording) -> None:
        self._values = values
        self._recording = recording
        #: What a language model is assumed to generate when its logits are not known.
        self.token: int | None = None

    def scalar(self, tensor: torch.Tensor) -> Any:  # noqa: ANN401 - a number or a boolean
        """Return the value that the program reads from a tensor of one element."""
        value = self._values.of(tensor)
        if value is not None:
            self._recording.read_value()
            with _disable_current_modes():
                return value.item()
        if tensor.dtype == torch.bool:
            assumed: bool | int | float | complex = _was_made_by_all(tensor)
        else:
            assumed = 1.0 if tensor.dtype.is_floating_point or tensor.dtype.is_complex else 1
        self._recording.assume(f"a value that the program reads is {assumed}")
        return assumed

    def values_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the values that the program reads from a whole tensor."""
        value = self._values.of(tensor)
        if value is not None:
            self._recording.read_value()
            return value
        self._recording.assume("values that the program reads are 1")
        with _disable_current_modes():
            return torch.ones(tensor.shape, dtype=tensor.dtype)

    def remember(self, func: Any, result: object) -> None:  # noqa: ANN401 - OpOverload
        """Note of a result what an assumption about its values will rest on."""
        if not isinstance(result, FakeTensor):
            return
        if func._schema.name in {"aten::all", "aten::_is_all_true"}:
            result._audit_says_all = True
        elif (
            self.token is not None
            and func._schema.name in {"aten::argmax", "aten::multinomial"}
            and self._values.of(result) is None
        ):
            self._recording.assume(f"the generated token is {self.token}")
            with _disable_current_modes():
                tokens = torch.full(result.shape, self.token, dtype=result.dtype)
            self._values.keep(result, tokens)

    def result(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        error: Exception,
    ) -> object:
        """Return fakes like the results that the operator has on the CPU.

        Raises:
            AuditError: the CPU cannot tell either.
        """
        tensors = [*tensors_in((args, *kwargs.values()))]
        if any(tensor.layout != torch.strided for tensor in tensors):
            # With tensors of another layout than they expect, kernels of the CPU have crashed.
            raise _no_shape(func, "its inputs are sparse") from error
        known = self._values.known(args, kwargs)
        if not known:
            self._check_size(func, args, kwargs, error)
            self._recording.assume(f"{func.name()} returns what it does for ones, and index 0")
        try:
            real = run_on_cpu(func, args, kwargs, self._value_or_plain)
        except (RuntimeError, NotImplementedError) as refusal:
            raise _no_shape(func, refusal) from error
        device = next((t.device for t in tensors for _ in npu_tensors(t)), None)
        fake = self._fake(func, args, kwargs, real, device)
        if known:
            self._values.keep(fake, real)
        else:
            self._values.forget(func, args, kwargs)
        return fake

    def _fake(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        real: object,
        device: torch.device | None,
    ) -> object:
        if device is None:
            named = kwargs.get("device")
            device = torch.device(named) if named is not None else torch.device("cpu")
        returns = func._schema.returns
        results = list(real) if len(returns) > 1 and isinstance(real, (list, tuple)) else [real]
        written = iter(written_tensors(func._schema, args, kwargs))
        fakes: list[object] = []
        for declared, value in zip(returns, results, strict=False):
            if declared.alias_info is not None and declared.alias_info.is_write:
                fakes.append(_resized(next(written), value))
            else:
                fakes.append(_like(value, device))
        return tuple(fakes) if len(returns) > 1 else fakes[0] if fakes else None

    def _value_or_plain(self, tensor: torch.Tensor) -> torch.Tensor:
        value = self._values.of(tensor)
        return _plain(tensor) if value is None else value

    def _check_size(
        self,
        func: Any,  # noqa: ANN401 - torch._ops.OpOverload
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        error: Exception,
    ) -> None:
        tensors = tensors_in((args, *kwargs.values()))
        total = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if total > _MOST_BYTES:
            raise _no_shape(func, f"its inputs, {total:,} bytes, are too large to try") from error


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return ones, or zeros for integers: kernels do not check every index they are given."""
    is_integer = not (
        tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool
    )
    return torch.full(tensor.shape, not is_integer, dtype=tensor.dtype)


def _was_made_by_all(tensor: torch.Tensor) -> bool:
    return bool(getattr(tensor, "_audit_says_all", False))


def _like(real: object, device: torch.device) -> object:
    if isinstance(real, torch.Tensor):
        if real.layout != torch.strided:
            return torch.empty(real.shape, dtype=real.dtype, device=device)
        return torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=device)
    if isinstance(real, (list, tuple)):
        return [_like(item, device) for item in real]
    return real


def _resized(written: torch.Tensor, real: object) -> torch.Tensor:
    if isinstance(real, torch.Tensor) and real.shape != written.shape:
        torch.ops.aten.resize_.default(written, real.shape)
    return written


def _no_shape(func: Any, why: object) -> AuditError:  # noqa: ANN401 - OpOverload
    reason = " ".join(str(why).split())[:200]
    return AuditError(
        f"{func.name()} has no fake kernel, and the CPU does not tell its results ({reason})",
        "register one with torch.library.register_fake",
    )
