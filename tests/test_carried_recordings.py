"""How operators were called first outlives the pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npu_fallback_exporter.carried import recordings
from npu_fallback_exporter.carried.recordings import Recording, decode, encode
from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.pages.model import Versions
from npu_fallback_exporter.pages.notes import Argument, CallSite, Place
from npu_fallback_exporter.report.recordings import recordings as all_recordings

from .support.in_process_exporter import InProcessExporter
from .support.page_factory import PageFactory

ONE = Recording(
    Versions("2.13.0", "2.13.0", "8.5.0", "0.1.0"),
    (Argument("self", False, {"dtype": "float32", "shape": [2, 3]}),),
    CallSite(Place("/srv/model.py", 7, "forward"), (Place("/srv/model.py", 7, "forward"),), 5, 0),
)


def _page(op: str, line: int) -> PageFactory:
    page = PageFactory().events(op, 1)
    row = page.op(op)
    place = ["/srv/model.py", line, "forward"]
    page.note(layout.NOTE_CALL_SITE, row, {"site": place, "stack": [place], "signature": 0})
    page.note(layout.NOTE_ARGUMENTS, row, {"arguments": [{"name": "self", "value": line}]})
    return page


def test_what_is_written_is_what_is_read() -> None:
    bare = Recording(Versions("", "", "", ""), None, None)
    assert decode(encode({"aten::a": ONE, "aten::b": bare})) == {"aten::a": ONE, "aten::b": bare}


def test_call_site_and_arguments_of_a_process_that_has_ended_are_kept(tmp_path: Path) -> None:
    _page("aten::a", 7).write(tmp_path)
    before = all_recordings([tmp_path])
    InProcessExporter(tmp_path).look()
    assert list(tmp_path.glob("*.page")) == []
    assert all_recordings([tmp_path]) == before
    recorded, seen = before
    assert seen == {"aten::a"}
    assert str(recorded["aten::a"].call_site) == "/srv/model.py:7 in forward"


def test_the_first_recording_of_an_operator_stays(tmp_path: Path) -> None:
    exporter = InProcessExporter(tmp_path)
    for op, line in (("aten::a", 7), ("aten::a", 8), ("aten::b", 9)):
        _page(op, line).write(tmp_path)
        exporter.look()
    kept = decode((tmp_path / recordings.NAME).read_bytes())
    lines = {
        op: one.call_site.place.line
        for op, one in kept.items()
        if one.call_site and one.call_site.place
    }
    assert lines == {"aten::a": 7, "aten::b": 9}


def test_the_file_is_bounded_and_what_was_there_first_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recordings, "MAX_BYTES", 1500)
    data = encode({f"aten::op{number}": ONE for number in range(100)})
    assert len(data) <= 1500
    assert list(decode(data))[:2] == ["aten::op0", "aten::op1"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"version":2,"ops":{}}',
        b'{"version":1,"ops":[]}',
        b"[" * 100_000,
        *(
            json.dumps({"version": 1, "ops": {"aten::a": entry}}).encode()
            for entry in (None, {}, {"versions": [1, 2, 3, 4], "arguments": None, "site": None})
        ),
        json.dumps(
            {
                "version": 1,
                "ops": {"a": {"versions": ["", "", "", ""], "arguments": [7], "site": None}},
            }
        ).encode(),
    ],
)
def test_a_file_that_makes_no_sense_says_nothing(data: bytes) -> None:
    assert decode(data) == {}
