"""Reports as JSON: what is written is read again, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npu_fallback_exporter.errors import SourceError
from npu_fallback_exporter.report.json_format import as_json, decode, encode
from npu_fallback_exporter.report.model import Report

from .support.report_scene import Scene, busy_service


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """Return a report with all there is."""
    scene = Scene(tmp_path_factory.mktemp("pages"))
    busy_service(scene, points=12)
    yield scene.report()
    scene.close()


def test_a_saved_report_is_read_as_it_was(report: Report) -> None:
    again = decode(encode(report).decode(), "saved")
    assert replace(again, history=None) == replace(report, history=None)
    assert again.history is not None
    assert report.history is not None
    assert [op.op for op in again.history.ops] == [op.op for op in report.history.ops]
    assert again.history.unix == pytest.approx(report.history.unix)


def test_fields_of_later_releases_are_ignored(report: Report) -> None:
    content = as_json(report)
    content["later"] = [1]
    content["ops"][0]["later"] = {"a": None}
    assert decode(json.dumps(content), "saved").ops == report.ops


def test_what_can_be_computed_is_there_for_other_readers(report: Report) -> None:
    content = as_json(report)
    op = content["ops"][0]
    assert op["share_of_armed_time"] == op["host_seconds"] / content["armed_seconds"]
    assert op["per_thousand_operators"] == 1000 * op["events"] / content["operators"]
    assert op["mean_seconds"] == op["duration_seconds"] / op["events"]
    assert content["findings"][0]["level"] in {"bad", "watch"}


def test_fifteen_minutes_of_a_busy_service_take_less_than_50_kilobytes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    busy_service(scene)
    assert len(encode(scene.report())) < 50_000
    scene.close()


def _without(name: str) -> Any:
    return lambda content: content.pop(name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.update(format="x"), "its format is not npu-fallback-report"),
        (lambda content: content.update(format_version=2), "has version 2 of the format, not 1"),
        (lambda content: content.update(ops=5), "is not a report"),
        (lambda content: content["ops"][0].update(events="many"), "is not a report"),
        (lambda content: content["ops"][0].update(events=True), "is not a report"),
        (lambda content: content.update(syncs=[1]), "is not a report"),
        (_without("made_unix"), "is not a report"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(
    report: Report,
    change: Any,
    said: str,
) -> None:
    content = json.loads(encode(report))
    change(content)
    with pytest.raises(SourceError) as caught:
        decode(json.dumps(content), "saved.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '"x"'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="is not a report"):
        decode(text, "saved.json")
