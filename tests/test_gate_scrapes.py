"""``gate`` with scrapes of a real exporter, saved or fetched."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from npu_fallback_exporter.cli.main import main
from tests.support.exporter_process import Exporter, serving
from tests.support.page_factory import PageFactory, writer_of

#: Of a server that has loaded: 30 fallbacks, and few operators.
LOADING, SERVING, NEW = "aten::linalg_inv_ex.inverse", "aten::fmax.out", "aten::lgamma.out"


class Server:
    """A server's page and the exporter beside it."""

    def __init__(self, folder: Path, exporter: Exporter, **loading: int) -> None:
        self._folder, self._exporter = folder, exporter
        self.page = PageFactory().shard(0, 100, 100)
        self.add({LOADING: 30} | loading)

    def add(self, events: dict[str, int], operators: int = 100) -> Server:
        """Let the page say so many events and operators in all."""
        for op, count in events.items():
            self.page.events(op, count)
        self.page.shard(0, operators, operators)
        self.path = self.page.write(self._folder)
        return self

    def save(self, name: str, *, openmetrics: bool = False) -> str:
        """Scrape into a file."""
        accept = "application/openmetrics-text; version=1.0.0" if openmetrics else "text/plain"
        request = urllib.request.Request(self.address, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=30) as reply:
            text = reply.read().decode()
        assert text.endswith("# EOF\n") == openmetrics
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    @property
    def address(self) -> str:
        return self._exporter.url


@pytest.fixture(scope="module")
def exporters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Path, Exporter]]]:
    """Two exporters, each with a folder of its own."""
    with ExitStack() as stack:
        folders = [tmp_path_factory.mktemp(side) for side in ("baseline", "candidate")]
        yield [
            (folder, stack.enter_context(serving("--no-npu-smi", pages=folder)))
            for folder in folders
        ]


@pytest.fixture
def server(exporters: list[tuple[Path, Exporter]]) -> Iterator[Callable[[int], Server]]:
    with ExitStack() as stack:

        def start(number: int) -> Server:
            started = Server(*exporters[number])
            stack.enter_context(writer_of(started.path))
            return started

        yield start


@pytest.fixture
def baseline(server: Callable[[int], Server]) -> list[str]:
    """Flags of a baseline that has served 100,000 operators."""
    started = server(0)
    ready = started.save("ready.prom")
    return ["--baseline-scrapes", ready, started.add({SERVING: 1000}, 100_100).save("end.prom")]


def gate(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[str, Any]]:
    code = main(["gate", *flags])
    return code, json.loads(capsys.readouterr().out)


def test_what_fell_back_while_loading_does_not_count(
    server: Callable[[int], Server], baseline: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = server(1).add({LOADING: 60, NEW: 30})
    ready = candidate.save("ready.prom")
    end = candidate.add({SERVING: 1000}, 100_100).save("end.prom")
    code, verdict = gate(capsys, *baseline, "--candidate-scrapes", ready, end)
    assert (code, verdict["verdict"], verdict["reasons"]) == (0, "pass", [])
    assert verdict["candidate"]["fallbacks"] == 1000


def test_thirty_fallbacks_while_loading_and_none_afterwards_pass(
    server: Callable[[int], Server], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = []
    for number, side in enumerate(("baseline", "candidate")):
        started = server(number)
        ready = started.save("ready.prom")
        flags += [f"--{side}-scrapes", ready, started.add({}, 100_100).save("end.prom")]
    code, verdict = gate(capsys, *flags)
    assert (code, verdict["candidate"]["fallbacks"]) == (0, 0)


def test_a_new_op_fails_and_is_named_with_its_rate(
    server: Callable[[int], Server], baseline: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = server(1)
    ready = candidate.save("ready.prom")
    candidate.add({SERVING: 1000, NEW: 10}, 100_100)
    code, verdict = gate(capsys, *baseline, "--candidate-scrapes", ready, candidate.address)
    (reason,) = verdict["reasons"]
    assert (code, reason["check"], reason["op"], reason["delta"]) == (1, "new_op", NEW, 0.1)


def test_openmetrics_and_text_say_the_same(
    server: Callable[[int], Server], baseline: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = server(1)
    verdicts = []
    ready = [candidate.save(f"ready.{kind}", openmetrics=kind == "om") for kind in ("om", "prom")]
    candidate.add({SERVING: 1300}, 100_100)
    for kind, first in zip(("om", "prom"), ready, strict=True):
        end = candidate.save(f"end.{kind}", openmetrics=kind == "om")
        verdicts.append(gate(capsys, *baseline, "--candidate-scrapes", first, end))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0][0] == 1


def test_several_exporters_of_a_side_add_up(
    baseline: list[str], server: Callable[[int], Server], capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = server(1)
    pair = [candidate.save("ready.prom"), candidate.add({}, 10_100).save("end.prom")]
    twice = ["--candidate-scrapes", *pair] * 2
    code, verdict = gate(capsys, *baseline, *twice)
    assert (code, verdict["candidate"]["operators"]) == (0, 20_000)


def test_a_restart_between_the_scrapes_is_no_verdict(
    baseline: list[str], server: Callable[[int], Server], capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = server(1).add({SERVING: 50}, 50_000)
    ready = candidate.save("ready.prom")
    text = Path(ready).read_text(encoding="utf-8")
    fallen = re.sub(r"(?m)^npu_operators_total .*", "npu_operators_total 40000", text)
    (end := Path(ready).with_name("end.prom")).write_text(fallen, encoding="utf-8")
    code, verdict = gate(capsys, *baseline, "--candidate-scrapes", ready, str(end))
    assert (code, verdict["verdict"]) == (3, "inconclusive")
    assert "had a restart in them" in verdict["reasons"][0]["message"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no data of a hooked process"),
        ("# EOF\n", "no data of a hooked process"),
        ("npu_operators_total{", "is not a scrape"),
        ("<html><body>404</body></html>\n", "is not a scrape"),
        ("npu_fallback_armed_seconds_total 1\n", "no npu_operators_total, the measure of traffic"),
        ("npu_fallback_armed_seconds_total 1\nnpu_operators_total NaN\n", "not a number in npu_op"),
    ],
)
def test_a_scrape_without_data_is_no_verdict(
    tmp_path: Path, baseline: list[str], capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (path := tmp_path / "saved.prom").write_text(text, encoding="utf-8")
    code, verdict = gate(capsys, *baseline, "--candidate-scrapes", str(path), str(path))
    assert (code, verdict["verdict"]) == (3, "inconclusive")
    assert said in verdict["reasons"][0]["message"]


def test_a_file_that_is_not_there_is_a_usage_error_in_one_line(
    baseline: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *baseline, "--candidate-scrapes", "/no/such", "/file"]) == 2
    out, error = capsys.readouterr()
    assert (out, error) == (
        "",
        "npu-fallback-exporter: cannot read /no/such: No such file or directory: name a saved "
        "scrape or an address\n",
    )
