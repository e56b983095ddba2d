"""What ``--input`` says: the data type, the shape and, if wanted, the name and values of one input.

::

    input  = [ NAME "=" ] DTYPE [ "[" SIZE { "," SIZE } "]" ] [ ":" VALUE [ ".." VALUE ] ]
    DTYPE  = f16 | bf16 | f32 | f64 | i8 | u8 | i16 | i32 | i64 | bool | c64 | c128

``f32[2,16,64]``, ``input_ids=i64[1,16]:0..99``, ``bool[1,16]``, ``f32`` (a scalar). Without values:
standard normal for floating and complex types, ones for integers, True for booleans. ``A..B`` draws
evenly from A to B, both included for integers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import AuditError, unknown

#: Short names of data types, and what PyTorch calls them.
DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
}

_SPEC = re.compile(
    r"(?:(?P<name>[^=\[\]:]*)=)?(?P<dtype>[^\[\]:=]*)(?:\[(?P<shape>[^\[\]]*)\])?(?::(?P<values>.*))?"
)
_EXAMPLE = "write it as in f32[2,16,64] or input_ids=i64[1,16]:0..99"


@dataclass(frozen=True)
class InputSpec:
    """One input of a model.

    Attributes:
        name: the keyword; None for a positional input.
        dtype: PyTorch's name of the data type, such as ``float32``.
        shape: sizes; empty for a scalar.
        values: lowest and highest value; None where the type decides.
    """

    name: str | None
    dtype: str
    shape: tuple[int, ...]
    values: tuple[float, float] | None = None


def parse_input(text: str) -> InputSpec:
    """Read one ``--input``.

    Raises:
        AuditError: it is not of that form.
    """
    found = _SPEC.fullmatch(text.strip())
    if found is None:
        raise AuditError(f"input {text!r} is not of the form DTYPE[SIZES]", _EXAMPLE)
    name = found["name"]
    if name is not None and not name.isidentifier():
        raise AuditError(f"input {text!r}: {name!r} cannot be the name of an argument", _EXAMPLE)
    dtype = found["dtype"]
    if dtype in DTYPES.values():
        dtype = next(short for short, full in DTYPES.items() if full == dtype)
    if dtype not in DTYPES:
        raise unknown("data type", dtype, DTYPES, f"choose one of {', '.join(DTYPES)}")
    return InputSpec(name, DTYPES[dtype], _shape(found["shape"], text), _values(found, text))


def parse_inputs(texts: list[str]) -> tuple[InputSpec, ...]:
    """Read all ``--input`` of a command.

    Raises:
        AuditError: one is malformed, or names are given twice.
    """
    specs = tuple(map(parse_input, texts))
    names = [spec.name for spec in specs if spec.name is not None]
    for name in names:
        if names.count(name) > 1:
            raise AuditError(f"input {name!r} is given {names.count(name)} times", "give it once")
    return specs


def _shape(text: str | None, spec: str) -> tuple[int, ...]:
    if text is None or not text.strip():
        return ()
    sizes = [size.strip() for size in text.split(",")]
    for size in sizes:
        if not size.isdecimal():
            raise AuditError(f"input {spec!r}: {size!r} is no size", _EXAMPLE)
    return tuple(map(int, sizes))


def _values(found: re.Match[str], spec: str) -> tuple[float, float] | None:
    text = found["values"]
    if text is None:
        return None
    low, dots, high = text.partition("..")
    try:
        values = (float(low), float(high if dots else low))
    except ValueError:
        raise AuditError(f"input {spec!r}: {text!r} are no values", _EXAMPLE) from None
    if not values[0] <= values[1]:
        raise AuditError(f"input {spec!r}: {low} is more than {high}", "give the lower value first")
    return values
