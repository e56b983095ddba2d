"""What ``--input`` accepts, and how it refuses."""

from __future__ import annotations

import pytest

from npu_fallback_exporter.audit.errors import AuditError
from npu_fallback_exporter.audit.input_spec import InputSpec, parse_input, parse_inputs


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("f32[2,16,64]", InputSpec(None, "float32", (2, 16, 64))),
        ("i64[1, 32]", InputSpec(None, "int64", (1, 32))),
        ("input_ids=i64[1,16]", InputSpec("input_ids", "int64", (1, 16))),
        ("mask=bool[4]", InputSpec("mask", "bool", (4,))),
        ("bf16", InputSpec(None, "bfloat16", ())),
        ("float32[3]", InputSpec(None, "float32", (3,))),
        ("i64[8]:0..99", InputSpec(None, "int64", (8,), (0, 99))),
        ("f32[8]:-0.5", InputSpec(None, "float32", (8,), (-0.5, -0.5))),
        ("x=f16[0,3]:-1..1", InputSpec("x", "float16", (0, 3), (-1, 1))),
    ],
)
def test_an_input_has_a_type_a_shape_and_perhaps_a_name_and_values(
    text: str, spec: InputSpec
) -> None:
    assert parse_input(text) == spec


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("f23[2]", "no data type 'f23': did you mean f32"),
        ("f32[2,x]", "'x' is no size"),
        ("f32[2", "is not of the form"),
        ("f32[-1]", "'-1' is no size"),
        ("in put=f32[2]", "cannot be the name of an argument"),
        ("i64[2]:a..b", "are no values"),
        ("i64[2]:9..1", "is more than"),
        ("", "no data type ''"),
    ],
)
def test_a_malformed_input_is_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(AuditError) as caught:
        parse_input(text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(AuditError, match="'x' is given 2 times"):
        parse_inputs(["x=f32[1]", "x=f32[2]"])
