"""Scrapes and pages to reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from npu_fallback_exporter.errors import QuestionError, SourceError
from npu_fallback_exporter.report import units
from npu_fallback_exporter.report.findings import findings
from npu_fallback_exporter.report.from_pages import report_on_pages
from npu_fallback_exporter.report.from_samples import Samples, report_of
from npu_fallback_exporter.report.model import Call, Report
from npu_fallback_exporter.report.sources import report_from
from npu_fallback_exporter.report.window import between
from npu_fallback_exporter.routing.remedies import remedy_for
from npu_fallback_exporter.scrapes import samples_in

from .support.exporter_process import serving
from .support.page_factory import SECOND_NS, PageFactory, writer_of
from .support.report_scene import Scene, armed, busy_service, call_site


def report_on(text: str) -> Report:
    samples = Samples(samples_in(text, "text"))
    return report_of(samples, origin="scrape", made_unix=1e9, version="1")


def full_page(folder: Path) -> PageFactory:
    page = armed(boundary=2, driver_bytes=(9, 8), driver_transfers=(2, 1))
    page.events("aten::fmax.out", 30).events("aten::logit", 4, kind="explicit_kernel", npu=1)
    page.slot("torchvision::nms", blocked=2, errors=1)
    page.sync("aten::nonzero", 5).transfer("d2h", "user", 4096, 2).shard(0, 1000, 10)
    call_site(page, "aten::fmax.out", "/srv/model.py", 12, "forward")
    page.write(folder)
    return page


def test_pages_and_a_scrape_of_the_same_pages_tell_the_same(tmp_path: Path) -> None:
    page = full_page(tmp_path)
    with writer_of(page.write(tmp_path)):
        PageFactory().events("aten::fmax.out", 12).write(tmp_path)  # of an ended process
        with serving("--no-npu-smi", pages=tmp_path) as exporter:
            saved = tmp_path / "scrape.prom"
            saved.write_text(exporter.scrape()[0])
            from_scrape = report_from(str(saved))
            from_exporter = report_from(exporter.url.removesuffix("metrics"))
        from_pages = report_on_pages([tmp_path])
    told = [
        [(op.op, op.kind, op.events, replace(op, call=None)) for op in report.ops]
        for report in (from_pages, from_scrape, from_exporter)
    ]
    assert told[0] == told[1] == told[2]
    assert [row[:3] for row in told[0]] == [
        ("aten::fmax.out", "dispatcher", 42),
        ("aten::logit", "explicit_kernel", 4),
        ("torchvision::nms", "dispatcher", 0),
    ]
    for report in (from_pages, from_scrape, from_exporter):
        assert (report.processes, report.processes_finished, report.operators) == (1, 1, 1000)
        assert report.syncs == {"aten::nonzero": 5}
        assert [(one.cause, one.bytes) for one in report.transfers if one.bytes] == [("user", 4096)]
        assert [one.bytes for one in report.driver] == [9, 8]


def test_only_pages_and_the_exporter_itself_know_where_an_operator_was_called(
    tmp_path: Path,
) -> None:
    full_page(tmp_path)
    with serving("--no-npu-smi", pages=tmp_path) as exporter:
        reports = {
            "pages": report_on_pages([tmp_path]),
            "exporter": report_from(exporter.url.replace("metrics", "api/v1/report")),
            "scrape": report_from(exporter.url),
        }
    call = Call(
        "/srv/model.py:12 in forward",
        "self float32[64, 151936], other float32[64, 151936]",
    )
    assert {name: report.ops[0].call for name, report in reports.items()} == {
        "pages": call,
        "exporter": call,
        "scrape": None,
    }


def test_an_operator_has_the_remedy_of_the_table(tmp_path: Path) -> None:
    full_page(tmp_path)
    remedy, known = report_on_pages([tmp_path]).ops[0].remedy, remedy_for("aten::fmax.out")
    assert remedy is not None
    assert known is not None
    assert (remedy.en, remedy.zh) == (known.en, known.zh)


def test_the_most_expensive_in_host_time_comes_first(tmp_path: Path) -> None:
    page = armed().events("aten::often", 1000)
    page.slot("aten::slow", events=1, host_ns=9 * SECOND_NS, host_ns_events=1).write(tmp_path)
    assert [op.op for op in report_on_pages([tmp_path]).ops] == ["aten::slow", "aten::often"]


def test_duration_ranks_where_host_time_is_not_measured(tmp_path: Path) -> None:
    page = armed(track=1).slot("aten::a", events=5, duration_ns=1)
    page.slot("aten::b", events=1, duration_ns=SECOND_NS).write(tmp_path)
    report = report_on_pages([tmp_path])
    assert [(op.op, op.host_seconds) for op in report.ops] == [("aten::b", None), ("aten::a", None)]
    assert report.operators is None


def test_the_scrape_of_something_else_is_refused_with_the_next_step() -> None:
    with pytest.raises(SourceError, match="take the scrape from an npu-fallback-exporter"):
        report_on("up 1\n")


def test_values_that_are_no_number_are_left_out() -> None:
    report = report_on(
        "npu_fallback_armed_seconds_total 5\nnpu_operators_total NaN\n"
        'npu_fallback_events_total{op="a",kind="b",npu="0"} +Inf\n'
    )
    assert (report.armed_seconds, report.operators, report.ops) == (5, None, ())


def test_what_everybody_may_see_has_no_path_call_site_or_pid(tmp_path: Path) -> None:
    page = full_page(tmp_path)
    with writer_of(page.write(tmp_path)):
        report = report_on_pages([tmp_path])
    assert "/srv/model.py" in repr(report)
    told = repr(report.without_details())
    assert not any(secret in told for secret in ("/srv", str(tmp_path), "float32"))
    assert [worker.pid for worker in report.without_details().workers] == [None]


def test_a_window_is_what_happened_between_two_reports(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    page, _ = busy_service(scene, points=5)
    earlier = scene.report()
    page.slot("aten::fmax.out", events=2000 + 7, host_ns=20 * SECOND_NS, duration_ns=30 * SECOND_NS)
    page.shard(0, 10_000_000, 10_000_000).write(tmp_path)
    scene.pass_time(100)
    window = between(earlier, scene.report())
    before = next(op for op in earlier.ops if op.op == "aten::fmax.out")
    (op,) = window.ops
    assert op.events == 2007 - before.npus["0"]
    assert (window.armed_seconds, window.since_unix) == (200, earlier.made_unix)
    scene.close()


def test_a_window_of_two_different_servers_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    armed().events("aten::a", 5).write(tmp_path / "a")
    armed().events("aten::a", 3).write(tmp_path / "b")
    reports = [report_on_pages([tmp_path / name]) for name in ("a", "b")]
    with pytest.raises(QuestionError, match="not two readings of the same counters"):
        between(*reports)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (units.size(0), "0 B"),
        (units.size(1536), "1.5 KiB"),
        (units.size(5 << 40), "5.0 TiB"),
        (units.duration(0), "0 s"),
        (units.duration(0.0000123), "12.3 µs"),
        (units.duration(0.0023), "2.3 ms"),
        (units.duration(61.5), "61.50 s"),
        (units.duration(7200), "2.0 h"),
        (units.duration(None), "–"),
        (units.share(0.0001), "<0.1%"),
        (units.share(0.1234), "12.3%"),
        (units.rate(0.01234), "0.0123"),
        (units.rate(1234.5), "1,234"),
        (units.rate(0.0), "0"),
    ],
)
def test_numbers_are_for_people(told: str, expected: str) -> None:
    assert told == expected


def verdict(scene: Scene) -> tuple[str, str]:
    first = findings(scene.report())[0]
    assert first.zh
    return first.level, first.en


def test_the_verdict_before_any_process_counts_says_how_to_begin(tmp_path: Path) -> None:
    level, text = verdict(Scene(tmp_path))
    assert level == "unknown"
    assert "NPU_FALLBACK_HOOK=1" in text


def test_the_verdict_without_fallbacks_is_good(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.live(armed().shard(0, 500, 400))
    scene.pass_time()
    assert verdict(scene) == ("fine", "No operator has fallen back to the CPU.")
    scene.close()


def test_no_fallback_and_no_device_tensor_is_no_good_news(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.live(armed().shard(0, 500, 0))
    level, text = verdict(scene)
    assert (level, "does this server use it?" in text) == ("watch", True)
    scene.close()


def test_the_verdict_is_on_the_last_minutes_and_names_the_operator(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    busy_service(scene)
    level, text = verdict(scene)
    assert level == "bad"
    assert text.startswith("In the last 5 min, ")
    assert text.endswith("operator calls on the host CPU, most of it aten::fmax.out.")
    scene.close()


def test_old_fallbacks_do_not_trouble_today(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.live(armed().events("aten::a", 5).shard(0, 9, 9))
    scene.pass_time()
    scene.pass_time()
    assert verdict(scene) == (
        "fine",
        "In the last 10 s, no operator fell back to the CPU; 5 calls had before.",
    )
    scene.close()


def test_what_is_wrong_with_the_sources_comes_after_the_verdict(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.utilization = None
    scene.pass_time()
    (tmp_path / "bad.page").write_bytes(b"x")
    alerts = [one.alert for one in findings(scene.report())]
    assert alerts == ["NpuFallbackHookNotArmed", "NpuFallbackPagesSkipped", "NpuSmiDown"]
