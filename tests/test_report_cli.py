"""``report`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npu_fallback_exporter.cli.main import main

from .support.page_factory import PageFactory
from .support.report_scene import armed
from .test_report_output import Elements

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Return a folder with the page of one ended process."""
    folder = tmp_path / "pages"
    folder.mkdir()
    armed().events("aten::fmax.out", 7).shard(0, 1000, 10).write(folder)
    return folder


def report(capsys: Capture, *arguments: str) -> str:
    assert main(["report", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def refused(capsys: Capture, *arguments: str) -> tuple[int, str]:
    status = main(["report", *arguments])
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    return status, output.err


def test_a_folder_may_be_named_in_three_ways(
    pages: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_flag = report(capsys, "--pages", str(pages), "--format", "json")
    by_name = report(capsys, str(pages), "--format", "json")
    monkeypatch.setenv("NPU_FALLBACK_DIR", str(pages))
    by_environment = report(capsys, "--format", "json")
    events = [json.loads(text)["ops"][0]["events"] for text in (by_flag, by_name, by_environment)]
    assert events == [7, 7, 7]


def test_piped_text_is_plain(pages: Path, capsys: Capture) -> None:
    text = report(capsys, str(pages))
    assert "\x1b" not in text
    assert "aten::fmax.out  dispatcher" in text


def test_html_is_one_document(pages: Path, capsys: Capture) -> None:
    assert "table" in Elements(report(capsys, str(pages), "--format", "html")).names


def test_a_saved_report_can_be_shown_again(pages: Path, capsys: Capture, tmp_path: Path) -> None:
    saved = tmp_path / "report.json"
    saved.write_text(report(capsys, str(pages), "--format", "json"))
    shown = report(capsys, str(pages)).splitlines()
    assert report(capsys, str(saved)).splitlines()[1:] == shown[1:]


def test_a_window_and_a_comparison_of_two_windows(
    pages: Path, capsys: Capture, tmp_path: Path
) -> None:
    def save(name: str, *arguments: str) -> str:
        (tmp_path / name).write_text(report(capsys, *arguments, "--format", "json"))
        return str(tmp_path / name)

    first = save("0.json", str(pages))
    armed().events("aten::fmax.out", 100).shard(0, 10_000, 10).write(pages)
    before = save("1.json", str(pages), "--since", first)
    second = save("2.json", str(pages))
    armed().events("aten::isin", 2).shard(0, 10_000, 10).write(pages)
    after = save("3.json", str(pages), "--since", second)
    told = json.loads(report(capsys, "diff", before, after, "--format", "json"))
    assert [told[side]["events"] for side in ("before", "after")] == [100, 2]
    assert {one["op"]: one["change"] for one in told["ops"]} == {
        "aten::fmax.out": "vanished",
        "aten::isin": "appeared",
    }
    assert "1 operator appeared, 1 operator vanished" in report(capsys, "diff", before, after)
    assert "svg" in Elements(report(capsys, "diff", before, after, "--format", "html")).names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.json",), "cannot read nowhere.json"),
        (("--pages", "/nowhere"), "there is no folder of pages (/nowhere)"),
        (("diff", "one.json"), "report diff compares two sources"),
        (("a", "b"), "more than one source is named"),
        (("a", "--url", "http://b"), "more than one source is named"),
    ],
)
def test_a_question_that_cannot_be_is_a_usage_error(
    capsys: Capture, arguments: tuple[str, ...], said: str
) -> None:
    status, text = refused(capsys, *arguments)
    assert (status, said in text) == (2, True)


def test_no_answer_is_a_failure_with_the_next_step(capsys: Capture) -> None:
    status, text = refused(capsys, "--url", "http://127.0.0.1:1")
    assert status == 1
    assert "no answer from http://127.0.0.1:1/api/v1/report" in text
    assert "check the address and that the exporter runs" in text


def test_a_file_that_cannot_be_read_as_a_page_is_named(pages: Path, capsys: Capture) -> None:
    (pages / "bad.page").write_bytes(b"x" * 100)
    text = report(capsys, str(pages))
    assert f"pages: FAILS {pages}/bad.page: " in text
    assert "1 file in the pages folder cannot be read (magic)." in text


def test_an_empty_folder_says_how_to_begin(tmp_path: Path, capsys: Capture) -> None:
    assert "start the server with NPU_FALLBACK_HOOK=1" in report(capsys, str(tmp_path))


def test_pages_are_only_read(pages: Path, capsys: Capture) -> None:
    PageFactory().write(pages)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in pages.iterdir())
    report(capsys, str(pages))
    assert sorted((path.name, path.stat().st_mtime_ns) for path in pages.iterdir()) == before
