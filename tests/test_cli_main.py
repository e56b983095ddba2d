"""The command line as a whole."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest

from npu_fallback_exporter import __version__
from npu_fallback_exporter.cli import main as cli
from npu_fallback_exporter.errors import NpuFallbackError


def _verb_that_raises(error: BaseException) -> SimpleNamespace:
    def run(_args: argparse.Namespace) -> int:
        raise error

    return SimpleNamespace(HELP="fail", EXAMPLE="fail", add_arguments=lambda parser: None, run=run)


def _run_verb_that_raises(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    monkeypatch.setattr(cli, "_verb", lambda name: _verb_that_raises(error))
    return cli.main(["serve"])


def test_without_a_verb_the_verbs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "serve" in capsys.readouterr().err


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {verb}" in text for verb in cli.VERBS)


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_of_every_verb_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, "--help"])
    assert caught.value.code == 0
    assert "example:\n  npu-fallback-exporter" in capsys.readouterr().out


def test_an_unknown_verb_is_answered_with_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sevre"]) == 2
    assert capsys.readouterr().err == (
        "npu-fallback-exporter: unknown verb 'sevre': did you mean serve?\n"
    )


def test_a_verb_like_none_is_answered_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["xyz"]) == 2
    assert "choose one of serve, " in capsys.readouterr().err


def test_a_wrong_flag_is_a_usage_error_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["serve", "--max-ops", "0"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "npu-fallback-exporter: argument --max-ops: '0' is not a whole number above 0: "
        "see npu-fallback-exporter serve --help\n"
    )


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"npu-fallback-exporter {__version__}\n"


def test_an_error_of_ours_is_one_line_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_verb_that_raises(monkeypatch, NpuFallbackError("no room", "free some")) == 1
    assert capsys.readouterr().err == "npu-fallback-exporter: no room: free some\n"


def test_a_defect_is_one_line_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_verb_that_raises(monkeypatch, KeyError("two\nlines")) == 1
    error = capsys.readouterr().err
    assert (error.count("\n"), "Traceback" in error) == (1, False)


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run_verb_that_raises(monkeypatch, KeyboardInterrupt()) == 130
