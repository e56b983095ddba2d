"""Reports for people: a terminal, plain lines, one file of HTML."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from npu_fallback_exporter.report import diff_html, diff_text, html, text
from npu_fallback_exporter.report.diff import compare
from npu_fallback_exporter.report.model import (
    GOOD,
    Call,
    DriverSum,
    HookVersions,
    ModeInForce,
    OpCost,
    Remedy,
    Report,
    Source,
    TransferSum,
)

from .support.report_scene import Scene, busy_service

HOSTILE = "aten::<script>alert(1)</script>\"'&\x1b[31m"

REPORT = Report(
    made_unix=1_760_000_000.0,
    origin="pages",
    exporter_version="0.1.0",
    since_unix=1_759_999_000.0,
    processes=2,
    armed_seconds=2000.0,
    operators=1_000_000,
    device_allocations=5,
    modes=(ModeInForce("warn", "default"),),
    hooks=(HookVersions("2.13.0", "2.13.0", "8.5.0", "0.1.0", "all", "full"),),
    ops=(
        OpCost(
            "aten::fmax.out",
            "dispatcher",
            events=2432,
            host_seconds=157.0,
            duration_seconds=200.0,
            bytes_d2h=79_691_776,
            bytes_h2d=39_845_888,
            buckets=(0, 0, 0, 0, 32, 2400, 0, 0, 0, 0, 0),
            npus={"0": 1200, "1": 1232},
            call=Call("/srv/model.py:42 in forward", "self float32[2, 3], other float32[2, 3]"),
            remedy=Remedy("torch.maximum", "torch.maximum（中文）"),
        ),
        OpCost("torchvision::nms", "dispatcher", blocked=3, errors=1),
    ),
    transfers=(TransferSum("d2h", "fallback", 79_691_776, 4864),),
    syncs={"aten::nonzero": 12},
    driver=(DriverSum("d2h", 80_000_000, 5000),),
    sources=(Source("pages", GOOD, "/dev/shm/npu-fallback-0"),),
)

PLAIN = """\
NPU fallback report of 2025-10-09 08:53:20 UTC, from pages
2 live and 0 ended processes, since 2025-10-09 08:36:40 UTC, armed 33.3 min in all, \
1,000,000 operators
mode warn (from default)
torch 2.13.0, torch_npu 2.13.0, CANN 8.5.0, hook 0.1.0, track all, boundary full

7.8% of the server's time went into 2,432 operator calls on the host CPU, most of it aten::fmax.out.
- Strict mode refused 3 calls, such as torchvision::nms: the code that made them got an exception.
- 1 fallback raised, such as torchvision::nms.

operator          kind        events  per 1,000  host time  share     mean   to host  to device
aten::fmax.out    dispatcher   2,432       2.43    2.6 min   7.8%  82.2 ms  76.0 MiB   38.0 MiB
torchvision::nms  dispatcher       0          0          –      –        –       0 B        0 B

aten::fmax.out
  first called from /srv/model.py:42 in forward
  with self float32[2, 3], other float32[2, 3]
  instead: torch.maximum

torchvision::nms
  refused 3 times
  raised 1 times

transfers  cause                         copies     bytes
d2h        fallback                       4,864  76.0 MiB
d2h        all, as the driver sees them   5,000  76.3 MiB

waits for a value  times
aten::nonzero         12

pages: read /dev/shm/npu-fallback-0
"""


def shown(report: Report, *, terminal: bool = False, width: int = 120) -> str:
    out = io.StringIO()
    text.show(report, Console(file=out, force_terminal=terminal, width=width, highlight=False))
    return out.getvalue()


def trimmed(printed: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def hostile() -> Report:
    op = OpCost(HOSTILE, HOSTILE, 5, host_seconds=1.0, call=Call(HOSTILE, HOSTILE))
    return Report(
        1e9,
        "scrape",
        HOSTILE,
        processes=1,
        armed_seconds=10.0,
        modes=(ModeInForce(HOSTILE, HOSTILE),),
        hooks=(HookVersions(*[HOSTILE] * 6),),
        ops=(op,),
        transfers=(TransferSum(HOSTILE, HOSTILE, 1, 1),),
        syncs={HOSTILE: 1},
        driver=(DriverSum(HOSTILE, 1, 1),),
        sources=(Source(HOSTILE, "failed", HOSTILE),),
        arm_failures={HOSTILE: 1},
    )


class Elements(HTMLParser):
    """Names of the elements, and whether each is closed where it should be."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self, document: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self._open: list[str] = []
        self.feed(document)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)


@pytest.fixture(scope="module")
def live_report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    """Return the report of an exporter with a history."""
    scene = Scene(tmp_path_factory.mktemp("pages"))
    busy_service(scene, points=12)
    yield scene.report()
    scene.close()


def test_plain_lines_are_what_they_are() -> None:
    assert trimmed(shown(REPORT)) == PLAIN


def test_a_terminal_gets_colours_and_bars() -> None:
    printed = shown(REPORT, terminal=True)
    assert "\x1b[" in printed
    assert "█" in printed


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_narrow_terminal_loses_no_operator(width: int) -> None:
    printed = shown(REPORT, width=width)
    assert "first called from /srv/model.py:42 in forward" in printed
    row = next(line for line in printed.splitlines() if "2,432 " in line and "call" not in line)
    assert "7.8%" in row


def test_80_columns_hold_the_table_uncut() -> None:
    lines = shown(REPORT, width=80).splitlines()
    head = next(line for line in lines if line.startswith("operator"))
    assert " ".join(head.split()) == "operator events host time share mean to host to device"
    (row,) = (line for line in lines if line.startswith("aten::fmax.out "))
    assert row.split()[-4:] == ["76.0", "MiB", "38.0", "MiB"]
    compared = shown_comparison(REPORT, REPORT, width=80).splitlines()
    (row,) = (line for line in compared if line.startswith("aten::fmax.out "))
    assert "7.8% → 7.8%" in row
    assert all(len(line) <= 80 for line in (head, row))


def test_a_hostile_name_moves_no_cursor_in_a_terminal() -> None:
    for printed in (shown(hostile()), shown_comparison(hostile(), hostile())):
        assert "\x1b" not in printed
        assert "\\x1b[31m" in printed


def shown_comparison(before: Report, after: Report, width: int = 120) -> str:
    out = io.StringIO()
    diff_text.show(compare(before, after), Console(file=out, width=width, highlight=False))
    return out.getvalue()


def test_html_is_well_formed_and_has_all_there_is(live_report: Report) -> None:
    for report in (REPORT, live_report):
        elements = Elements(html.document(report))
        assert {"svg", "table", "style"} <= elements.names
    document = html.document(REPORT)
    for words in (
        "7.8%",
        "2,432",
        "/srv/model.py:42",
        "torch.maximum",
        "aten::nonzero",
        "76.3 MiB",
    ):
        assert words in document


def test_html_runs_and_fetches_nothing() -> None:
    document = html.document(REPORT)
    elements = Elements(document)
    assert not {"script", "link", "img", "iframe", "a"} & elements.names
    assert not {"src", "href", "onload", "style"} & elements.attributes
    assert "default-src 'none'" in document


def test_a_hostile_name_is_text_in_html() -> None:
    for document in (html.document(hostile()), diff_html.document(compare(hostile(), hostile()))):
        assert "script" not in Elements(document).names
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in document
        assert "\x1b" not in document


def test_every_plot_is_valid_xml(live_report: Report) -> None:
    plots = html.document(live_report).split("<svg")[1:]
    assert len(plots) >= 4
    for plot in plots:
        ET.fromstring("<svg" + plot.partition("</svg>")[0] + "</svg>")


def test_html_of_the_shortest_report_is_well_formed(tmp_path: Path) -> None:
    assert "svg" not in Elements(html.document(Report(1e9, "pages", "0"))).names
