"""A script that calls an operator with arguments like those that were recorded."""

from __future__ import annotations

import difflib
import fnmatch
import json
import keyword
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import NpuFallbackError
from ..op_names import globs
from ..pages.model import Versions
from ..pages.notes import Argument, CallSite, printable


@dataclass(frozen=True)
class Recorded:
    """What one page knows about one operator."""

    op: str
    versions: Versions
    arguments: tuple[Argument, ...]
    call_site: CallSite | None


class NotRecordedError(NpuFallbackError):
    """No page holds the arguments of the operator that was asked for."""


def choose(name: str, recorded: Mapping[str, Recorded], seen: Iterable[str]) -> Recorded:
    """Return what was recorded of the operator that ``name`` stands for.

    Args:
        name: full overload name, operator without overload, glob, or Python name.
        recorded: by full overload name.
        seen: every operator with events, recorded or not.

    Raises:
        NotRecordedError: nothing was; near names are in the next step.
    """
    if name in recorded:
        return recorded[name]
    patterns = globs(name)
    for op in sorted(recorded):
        if any(fnmatch.fnmatchcase(op, pattern) for pattern in patterns):
            return recorded[op]
    without = [op for op in seen if any(fnmatch.fnmatchcase(op, pattern) for pattern in patterns)]
    if without:
        raise NotRecordedError(
            f"{without[0]} fell back, but its arguments were not recorded",
            "run the server without NPU_FALLBACK_CALL_SITES=0, until the operator falls back again",
        )
    raise NotRecordedError(f"{printable(name)} was not recorded", _near(name, sorted(recorded)))


def _near(name: str, recorded: list[str]) -> str:
    if not recorded:
        return "name the folder of the server's pages with --pages"
    by_short = {op.partition("::")[2]: op for op in recorded}
    short = name.rpartition("::")[2].removeprefix("torch.")
    near = [by_short[match] for match in difflib.get_close_matches(short, by_short, 3, 0.4)]
    near += [op for op in recorded if short and short in op and op not in near]
    return f"recorded are {', '.join((near or recorded)[:5])}"


def script(recorded: Recorded) -> str:
    """Return the script, ready to run where the NPU is.

    Raises:
        NotRecordedError: an argument is of a kind that cannot be made again.
    """
    namespace, _, rest = recorded.op.partition("::")
    name, _, overload = rest.partition(".")
    parts = [namespace, *name.split("."), overload or "default"]
    origin = "" if recorded.call_site is None else f", first called from {recorded.call_site}"
    variables = [_variable(argument.name) for argument in recorded.arguments]
    expressions = [_expression(argument.value) for argument in recorded.arguments]
    passed = (
        f"{argument.name}={variable}" if argument.keyword else variable
        for argument, variable in zip(recorded.arguments, variables, strict=True)
    )
    return _TEMPLATE.format(
        op=_comment(recorded.op),
        origin=_comment(origin),
        versions=_comment(
            f"torch {recorded.versions.torch or 'unknown'}, "
            f"torch_npu {recorded.versions.torch_npu or 'unknown'}, "
            f"CANN {recorded.versions.cann or 'unknown'}"
        ),
        helper=_MAKE_TENSOR if any("make_tensor(" in text for text in expressions) else "",
        assignments="".join(
            f"{variable} = {text}\n" for variable, text in zip(variables, expressions, strict=True)
        ),
        call=f"torch.ops.{'.'.join(map(_identifier, parts))}({', '.join(passed)})",
        name=recorded.op,
    )


def _comment(text: str) -> str:
    return printable(text).replace("\\", "/").replace('"""', "'''")


def _variable(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else _identifier(name)


def _expression(value: object) -> str:
    """Return Python that makes one recorded value; never anything that was not foreseen."""
    match value:
        case None | bool() | int() | float() | str():
            return repr(value)
        case {"tensor": list(sizes), "dtype": str(dtype), **rest}:
            return _tensor(sizes, dtype, rest)
        case {"list": list(items), **rest}:
            expressions = ", ".join(map(_expression, items))
            more = rest.get("more")
            if type(more) is int and items:  # the page keeps the beginning of long lists
                last = _expression(items[-1])
                return f"[{expressions}, *({last} for _ in range({more}))]"
            return f"[{expressions}]"
        case {"dtype": str(name)}:
            return f"torch.{_identifier(name)}"
        case {"device": str(name)}:
            return f"torch.device({name!r})"
        case {"layout": int(number)}:
            return _LAYOUTS.get(number, "None")
        case {"memory_format": int(number)}:
            return _MEMORY_FORMATS.get(number, "None")
        case {"complex": [real, imaginary]}:
            return f"complex({_expression(real)}, {_expression(imaginary)})"
        case {"float": "inf" | "-inf" | "nan" as text}:
            return f"float({text!r})"
        case {"generator": _}:
            return "None"  # the default generator
        case _:
            raise NotRecordedError(
                f"an argument of kind {json.dumps(value)[:80]} cannot be made again",
                "write the call yourself, from the call site that the report shows",
            )


def _tensor(sizes: list[Any], dtype: str, value: Mapping[object, object]) -> str:
    on_npu = value.get("device") == "npu"
    layout = value.get("layout")
    if layout == _SPARSE_CSR:
        dense = f'make_tensor({_numbers(sizes)}, torch.{_identifier(dtype)}, device="cpu")'
        return f"{dense}.to_sparse_csr(){'.npu()' if on_npu else ''}"
    if layout is not None:
        raise NotRecordedError(
            f"a sparse argument of size {sizes} cannot be made again",
            "write the call yourself, from the call site that the report shows",
        )
    device = "" if on_npu else ', device="cpu"'
    strides = value.get("strides")
    strided = f", strides={_numbers(strides)}" if isinstance(strides, list) else ""
    return f"make_tensor({_numbers(sizes)}, torch.{_identifier(dtype)}{strided}{device})"


def _numbers(values: list[Any]) -> str:
    return repr([int(value) for value in values])


def _identifier(name: str) -> str:
    """Return a name that may stand in code: a page is not trusted."""
    if not name.isidentifier():
        raise NotRecordedError(f"{printable(name)!r} is no name", "report it with this line")
    return name


# Names that the script uses for itself.
_TAKEN = {"armed", "before", "make_tensor", "nfe", "range", "torch", "torch_npu"}

_SPARSE_CSR = 2
_LAYOUTS = {0: "torch.strided", 1: "torch.sparse_coo", _SPARSE_CSR: "torch.sparse_csr"}
_MEMORY_FORMATS = {
    0: "torch.contiguous_format",
    1: "torch.preserve_format",
    2: "torch.channels_last",
    3: "torch.channels_last_3d",
}

_MAKE_TENSOR = '''

def make_tensor(sizes, dtype, strides=None, device="npu"):
    """A tensor of the recorded size and type. Its values are made up: none are recorded."""
    if dtype.is_floating_point or dtype.is_complex:
        count = torch.Size(sizes).numel()
        values = ((torch.arange(count) * 7 % 13 + 1) / 13).reshape(sizes)  # all in (0, 1]
        if len(sizes) > 1 and sizes[-1] == sizes[-2]:
            values = values + sizes[-1] * torch.eye(sizes[-1])  # so that it can be factorised
    elif dtype == torch.bool:
        values = torch.ones(sizes)
    else:
        values = torch.zeros(sizes)  # as an index it is always valid
    values = values.to(dtype)
    if strides is not None:
        viewed = torch.empty_strided(sizes, strides, dtype=dtype)
        values = viewed.fill_(1) if 0 in strides else viewed.copy_(values)
        storage = values.untyped_storage().nbytes() // values.element_size()
        whole = values.as_strided([storage], [1]).to(device)
        return whole.as_strided(sizes, strides)
    return values.to(device)

'''

_TEMPLATE = '''\
"""Calls {op} as it was recorded{origin}.

Recorded with {versions}. Made by: npu-fallback-exporter repro {name}
"""

import torch
import torch_npu

import npu_fallback_exporter as nfe
{helper}
{assignments}
armed = nfe.install("observe")
before = dict(nfe.get_fallback_stats().top_ops(1000))
{call}
torch.npu.synchronize()
after = dict(nfe.get_fallback_stats().top_ops(1000))
on_cpu = [op for op, events in after.items() if events > before.get(op, 0)]

print("torch", torch.__version__, "torch_npu", torch_npu.__version__)
if not armed:
    print("{name} ran, but the hook is not armed, so where it ran cannot be told")
elif on_cpu:
    print("{name} ran on the CPU:", ", ".join(on_cpu))
else:
    print("{name} ran on the NPU")
'''
