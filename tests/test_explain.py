"""``explain OP``, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npu_fallback_exporter.cli.main import main

GOLDEN = Path(__file__).parent / "data" / "explain"
NAMES = [
    "aten::fmax.out",
    "torchvision::nms",
    "aten::_transformer_encoder_layer_fwd",
    "aten::isin.Tensor_Tensor_out",
    "torch.nn.functional.gelu",
    "torch.fmax",
    "aten::var.correction",
    "aten::scatter_reduce.two_out",
]


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    found = json.loads(explained(capsys, *arguments, "--format", "json"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_explanation_reads_as_it_was_approved(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = GOLDEN / f"{name.replace('::', '-')}.txt"
    assert explained(capsys, name, "--torch-npu", "2.13.0") == golden.read_text()


def routes(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, str]:
    operators = document(capsys, name, "--torch-npu", "2.13.0")["operators"]
    assert isinstance(operators, list)
    return {operator["op"]: operator["route"] for operator in operators}


@pytest.mark.parametrize(
    ("name", "op", "route"),
    [
        ("torch.fmax", "aten::fmax.out", "fallback"),
        ("fmax", "aten::fmax.out", "fallback"),
        ("torch.isin", "aten::isin.Tensor_Tensor_out", "npu"),
        ("torch.nn.functional.gelu", "aten::gelu", "composite"),
        ("nn.functional.gelu", "aten::gelu.out", "npu"),
        ("torch.linalg.inv", "aten::linalg_inv_ex.inverse", "fallback"),
        ("torch.inverse", "aten::inverse", "npu"),
        ("torch.linalg.cholesky", "aten::linalg_cholesky", "npu"),
        ("torch.special.gammaln", "aten::lgamma.out", "fallback"),
        ("torch.logcumsumexp", "aten::_logcumsumexp", "fallback"),
        ("torchvision.ops.nms", "torchvision::nms", "fallback"),
        ("torch_npu.npu_rms_norm", "npu::npu_rms_norm", "npu"),
        ("aten::fm*", "aten::fmin.out", "fallback"),
    ],
)
def test_a_name_stands_for_the_operators_it_reaches(
    name: str, op: str, route: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert routes(capsys, name)[op] == route


def test_a_python_function_with_its_own_kernel_does_not_stand_for_another_operator(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(routes(capsys, "torch.inverse")) == {"aten::inverse", "aten::inverse.out"}


def test_a_composite_operator_is_followed_to_where_it_falls_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = explained(capsys, "aten::linalg_inv", "--torch-npu", "2.13.0")
    assert "falls back to the host CPU, through aten::linalg_inv_ex.inverse" in text


def test_versions_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "aten::repeat_interleave.Tensor", "--torch-npu", "2.12.0")
    operators = found["operators"]
    assert isinstance(operators, list)
    assert operators[0]["versions"]["fallback"] == ["2.10.0.post4", "2.11.0", "2.12.0"]
    assert found["source"] == "table"


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["aten::fmx.out"], "aten::fmax.out"),
        (["torch.fmx"], "torch.fmax"),
        (["torch.isin", "--torch-npu", "2.13"], "2.13.0"),
        (["--diff", "2.12.0", "2.13"], "2.13.0"),
    ],
)
def test_a_typo_gets_the_nearest_name(
    arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = [] if "--diff" in arguments or "--torch-npu" in arguments else ["--torch-npu", "2.13.0"]
    assert main(["explain", *arguments, *table]) == 2
    line = capsys.readouterr().err
    assert near in line
    assert line.count("\n") == 1


def test_neither_operator_nor_difference_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain"]) == 2
    assert "--diff" in capsys.readouterr().err


def test_the_remedy_comes_in_chinese_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "aten::mode", "--torch-npu", "2.13.0", "--lang", "zh")
    assert "torch.unique" in text
    assert "一维时" in text


def test_the_difference_of_two_versions_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "--diff", "2.12.0", "2.13.0")
    assert "No longer fall back: 8" in text
    assert "aten::_fused_adam_  (falls back -> NPU kernel)" in text


def test_the_difference_of_two_versions_comes_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--diff", "2.12.0", "2.13.0")
    gained = found["no_longer_fall_back"]
    assert isinstance(gained, list)
    assert {"op": "aten::_fused_sgd_", "before": "fallback", "after": "npu"} in gained
