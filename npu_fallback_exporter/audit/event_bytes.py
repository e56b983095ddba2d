"""The bytes that the dispatcher's fallback would copy, from the arguments and results of a call.

The contract: every tensor on the NPU goes to the host, also inside lists, mutable and ``out=`` ones
too; mutated arguments, with their size after the call, and results come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .stand_in import NPU

if TYPE_CHECKING:
    import torch


def npu_tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors on the NPU in one argument or result, one level of lists deep."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.device.type == NPU:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, torch.Tensor) and item.device.type == NPU:
                yield item


def bytes_to_host(args: Sequence[object], kwargs: Mapping[str, object]) -> int:
    """Return the bytes that go to the host before the call."""
    return sum(map(_bytes, _tensors((*args, *kwargs.values()))))


def bytes_to_device(
    schema: Any,  # noqa: ANN401 - torch._C.FunctionSchema
    args: Sequence[object],
    kwargs: Mapping[str, object],
    result: object,
) -> int:
    """Return the bytes that come back after the call."""
    written = [value for argument, value in _bound(schema, args, kwargs) if _is_written(argument)]
    returns = schema.returns
    results = result if len(returns) > 1 and isinstance(result, (list, tuple)) else (result,)
    new = [
        value
        for declared, value in zip(returns, results, strict=False)
        if not _is_written(declared)
    ]
    return sum(map(_bytes, _tensors((*written, *new))))


def written_tensors(
    schema: Any,  # noqa: ANN401 - torch._C.FunctionSchema
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> list[torch.Tensor]:
    """Return the tensors that a call writes into, on any device."""
    import torch

    found: list[torch.Tensor] = []
    for argument, value in _bound(schema, args, kwargs):
        if _is_written(argument):
            values = value if isinstance(value, (list, tuple)) else (value,)
            found.extend(item for item in values if isinstance(item, torch.Tensor))
    return found


def _bound(
    schema: Any,  # noqa: ANN401 - torch._C.FunctionSchema
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> Iterator[tuple[Any, object]]:
    for index, argument in enumerate(schema.arguments):
        if index < len(args):
            yield argument, args[index]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def _is_written(declared: Any) -> bool:  # noqa: ANN401 - torch._C.Argument
    return declared.alias_info is not None and declared.alias_info.is_write


def _tensors(values: Sequence[object]) -> Iterator[torch.Tensor]:
    for value in values:
        yield from npu_tensors(value)


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())
