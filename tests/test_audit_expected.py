"""Which operators fail a run: the allow-list, the baseline and ``--fail-on``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npu_fallback_exporter.audit.as_json import as_json
from npu_fallback_exporter.audit.as_text import as_text
from npu_fallback_exporter.audit.errors import AuditError
from npu_fallback_exporter.audit.expected import (
    allow_globs,
    failing,
    read_baseline,
    with_standings,
    write_baseline,
)
from npu_fallback_exporter.audit.findings import Audit, Finding, PhaseCalls, Place, Verdict

KNOWN = ("aten::fmax.out", "aten::isin.Tensor_Tensor_out", "aten::lgamma.out", "npu::npu_swiglu")


def finding(op: str, verdict: Verdict = Verdict.FALLS_BACK) -> Finding:
    calls = {"forward": PhaseCalls(64, 1, 64 * 2048, 64 * 1024)}
    places = tuple(
        Place(f"Net.layers.{number}.mlp", "net.py:12 in forward", 2) for number in range(32)
    )
    return Finding(op, verdict, "", calls, places)


AUDIT = Audit(
    "net:build",
    "2.13.0",
    "2.13.0",
    (
        finding("aten::fmax.out"),
        finding("aten::lgamma.out"),
        finding("torchvision::nms"),
        finding("aten::polar", Verdict.MAY_FALL_BACK),
    ),
    {"forward": {"aten::add.Tensor": 7}},
)


def test_any_fails_for_what_is_not_allowed() -> None:
    judged = with_standings(AUDIT, ("aten::fmax.out",), frozenset({"aten::lgamma.out"}))
    assert failing(judged, "any") == ("aten::lgamma.out", "torchvision::nms")


def test_new_fails_for_what_is_neither_allowed_nor_in_the_baseline() -> None:
    judged = with_standings(AUDIT, ("aten::fmax.out",), frozenset({"aten::lgamma.out"}))
    assert failing(judged, "new") == ("torchvision::nms",)


def test_what_only_may_fall_back_fails_nothing() -> None:
    judged = with_standings(AUDIT, ("*",), frozenset())
    assert failing(judged, "any") == ()


def test_without_fail_on_nothing_fails() -> None:
    assert failing(with_standings(AUDIT, (), frozenset()), None) == ()


def test_a_baseline_that_was_written_lets_the_same_run_pass(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, AUDIT)
    judged = with_standings(AUDIT, (), read_baseline(path))
    assert failing(judged, "new") == ()
    assert "aten::polar" not in read_baseline(path)


def test_a_report_in_json_can_be_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(as_json(AUDIT, ())))
    assert "torchvision::nms" in read_baseline(path)


def test_a_missing_baseline_names_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "baseline.json").write_text("{}")
    with pytest.raises(AuditError, match=r"did you mean .*baseline\.json\?"):
        read_baseline(tmp_path / "basline.json")


@pytest.mark.parametrize("content", ["{", "[]", '{"ops": 3}', "{}"])
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(content)
    with pytest.raises(AuditError, match="baseline"):
        read_baseline(path)


def test_python_names_and_lists_are_allowed() -> None:
    globs = allow_globs(["torch.isin,aten::fmax", "mine::op"], KNOWN)
    assert {"aten::isin.*", "aten::fmax.*", "mine::op"} <= set(globs)


@pytest.mark.parametrize(
    ("name", "meant"), [("aten::fmxa.out", "aten::fmax.out"), ("torch.isni", "torch.isin")]
)
def test_an_allowed_operator_that_is_none_is_answered_with_near_ones(name: str, meant: str) -> None:
    with pytest.raises(AuditError, match=f"did you mean {meant}"):
        allow_globs([name], KNOWN)


def test_the_text_says_calls_bytes_place_and_verdict() -> None:
    text = as_text(with_standings(AUDIT, ("torchvision::nms",), frozenset()), ("aten::fmax.out",))
    assert "64 calls per forward, 2.0 KiB to the host and 1.0 KiB back each" in text
    assert text.count("net.py:12 in forward, Net.layers.*.mlp") == 4
    assert "torchvision::nms  [allowed]" in text
    assert text.endswith("3 operators fall back, of 1; 1 more may; failed by aten::fmax.out.")
