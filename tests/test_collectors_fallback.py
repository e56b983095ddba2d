"""The families of the hooks, from pages on disk to the text of a scrape."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.collectors.build_info import BuildInfoCollector
from npu_fallback_exporter.collectors.composite import CompositeCollector
from npu_fallback_exporter.collectors.fallback import FallbackCollector
from npu_fallback_exporter.collectors.process import OwnProcessCollector
from npu_fallback_exporter.metrics import CATALOGUE
from npu_fallback_exporter.pages.arm_failure import record
from npu_fallback_exporter.web.exposition import encode

from .support.exposition import assert_promtool_is_silent, families, samples, series
from .support.page_factory import SECOND_NS, PageFactory, writer_of

Scrape = Callable[[], str]
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def _scraper(folder: Path, accept: str = "", created_lines: bool = False) -> Scrape:
    fallback = FallbackCollector(
        lambda: [folder], Aggregator(), created_lines, monotonic_ns=lambda: 200 * SECOND_NS
    )
    composite = CompositeCollector([fallback, BuildInfoCollector(), OwnProcessCollector()])
    return lambda: encode(composite.snapshot(), accept).body.decode()


@pytest.fixture
def scrape(tmp_path: Path) -> Scrape:
    """Scrape the pages in `tmp_path`."""
    return _scraper(tmp_path)


def _full_page() -> PageFactory:
    page = PageFactory(boundary=2, driver_bytes=(9, 8), driver_transfers=(2, 1))
    page.set(transfer_size_buckets=tuple(range(16)), ops_overflowed=1)
    page.events("aten::fmax.out", 3).slot("aten::fmax.out", blocked=2, errors=1)
    page.events("aten::logit", 1, kind="explicit_kernel").sync("aten::nonzero", 5)
    return page.transfer("d2h", "user", 4096, 2).shard(0, 100, 10)


def test_events_carry_op_kind_and_npu(tmp_path: Path, scrape: Scrape) -> None:
    PageFactory(davinci_devices=(1 << 6, 0, 0, 0)).events("aten::fmax.out", 3).write(tmp_path)
    assert samples(scrape(), "npu_fallback_events_total") == {
        (("kind", "dispatcher"), ("npu", "6"), ("op", "aten::fmax.out")): 3
    }


def test_bytes_are_told_by_direction(tmp_path: Path, scrape: Scrape) -> None:
    PageFactory().events("aten::fmax.out", 1).write(tmp_path)
    found = samples(scrape(), "npu_fallback_transfer_bytes_total")
    assert {labels[0]: size for labels, size in found.items()} == {
        ("direction", "d2h"): 72,
        ("direction", "h2d"): 24,
    }


def test_host_seconds_are_absent_where_they_are_not_measured(
    tmp_path: Path, scrape: Scrape
) -> None:
    PageFactory().slot("aten::a", events=1).slot("aten::b", events=1).slot(
        "aten::b", host_ns=2_500_000_000, host_ns_events=1
    ).write(tmp_path)
    assert list(samples(scrape(), "npu_fallback_host_seconds_total").values()) == [2.5]


def test_durations_are_a_cumulative_histogram_over_all_npus(tmp_path: Path, scrape: Scrape) -> None:
    buckets = (1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1)
    page = PageFactory()
    for npu in (0, 1):
        page.slot("aten::a", npu=npu, events=4, duration_ns=2 * SECOND_NS, duration_buckets=buckets)
    page.write(tmp_path)
    text = scrape()
    found = samples(text, "npu_fallback_duration_seconds_bucket")
    by_bound = {float(dict(labels)["le"]): value for labels, value in found.items()}
    assert [by_bound[bound] for bound in (1e-5, 3e-4, 1e-3, 1, float("inf"))] == [2, 2, 6, 6, 8]
    assert list(samples(text, "npu_fallback_duration_seconds_count").values()) == [8]
    assert list(samples(text, "npu_fallback_duration_seconds_sum").values()) == [4]


def test_blocked_and_errors_appear_at_first_use(tmp_path: Path, scrape: Scrape) -> None:
    page = PageFactory().events("aten::a", 1)
    with writer_of(page.write(tmp_path)):
        assert "npu_fallback_blocked" not in families(scrape())
        page.slot("aten::a", blocked=2, errors=3).write(tmp_path)
        text = scrape()
    assert list(samples(text, "npu_fallback_blocked_total").values()) == [2]
    assert list(samples(text, "npu_fallback_errors_total").values()) == [3]


def test_an_op_that_only_failed_has_no_bytes_and_no_durations(
    tmp_path: Path, scrape: Scrape
) -> None:
    PageFactory().slot("my::op", errors=1).write(tmp_path)
    text = scrape()
    assert list(samples(text, "npu_fallback_events_total").values()) == [0]
    assert not {"npu_fallback_transfer_bytes", "npu_fallback_duration_seconds"} & set(
        families(text)
    )


def test_families_of_the_tracker_need_a_process_that_tracks_all(
    tmp_path: Path, scrape: Scrape
) -> None:
    tracker = {
        "npu_transfer_bytes",
        "npu_transfers",
        "npu_transfer_size_bytes",
        "npu_syncs",
        "npu_operators",
        "npu_device_allocations",
    }
    _full_page().set(track=1).write(tmp_path)
    assert not tracker & set(families(scrape()))
    _full_page().write(tmp_path)
    assert tracker <= set(families(scrape()))


def test_sizes_of_transfers_are_a_histogram_whose_sum_is_their_bytes(
    tmp_path: Path, scrape: Scrape
) -> None:
    page = PageFactory(transfer_size_buckets=(1, 0, 0, 0, 0, 0, 0, 2) + (0,) * 8)
    page.transfer("d2h", "user", 1000, 2).transfer("d2h", "sync", 24, 1).write(tmp_path)
    text = scrape()
    d2h = (("direction", "d2h"),)
    assert samples(text, "npu_transfer_size_bytes_count")[d2h] == 3
    assert samples(text, "npu_transfer_size_bytes_sum")[d2h] == 1024


def test_driver_families_are_absent_unless_the_boundary_is_watched(
    tmp_path: Path, scrape: Scrape
) -> None:
    PageFactory().write(tmp_path)
    assert "npu_driver_transfers" not in families(scrape())
    _full_page().write(tmp_path)
    assert samples(scrape(), "npu_driver_transfer_bytes_total") == {
        (("direction", "d2h"),): 9,
        (("direction", "h2d"),): 8,
    }


def test_both_kinds_are_there_at_0_before_the_first_event(tmp_path: Path, scrape: Scrape) -> None:
    PageFactory(davinci_devices=(1, 0, 0, 0)).write(tmp_path)
    assert samples(scrape(), "npu_fallback_kind_events_total") == {
        (("kind", "dispatcher"), ("npu", "0")): 0,
        (("kind", "explicit_kernel"), ("npu", "0")): 0,
    }


def test_live_processes_tell_mode_versions_and_watched_ops(tmp_path: Path, scrape: Scrape) -> None:
    page = PageFactory(mode_source=1, watched_with_cpu_kernel=312, watched_without_cpu_kernel=351)
    with writer_of(page.write(tmp_path)):
        text = scrape()
    assert list(samples(text, "npu_fallback_mode_info")) == [
        (("mode", "warn"), ("source", "NPU_FALLBACK_MODE"))
    ]
    (hook,) = samples(text, "npu_fallback_hook_info")
    assert dict(hook) == {
        "torch_version": "2.13.0",
        "torch_npu_version": "2.13.0",
        "cann_version": "8.5.0",
        "hook_version": "0.1.0",
        "track": "all",
        "boundary": "none",
    }
    assert samples(text, "npu_fallback_operators_watched") == {
        (("cpu_kernel", "yes"),): 312,
        (("cpu_kernel", "no"),): 351,
    }
    assert samples(text, "npu_fallback_armed_seconds_total") == {(): 100}


def test_arm_failures_are_counted_by_reason(tmp_path: Path, scrape: Scrape) -> None:
    record(tmp_path, "torch_npu")
    assert samples(scrape(), "npu_fallback_arm_failures_total")[(("reason", "torch_npu"),)] == 1


def test_bad_pages_cost_only_themselves_and_are_told_by_reason(
    tmp_path: Path, scrape: Scrape, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty.page").touch()
    (tmp_path / "random.page").write_bytes(bytes(range(256)) * 2000)
    (tmp_path / "cut.page").write_bytes(PageFactory().data[:5000])
    PageFactory(layout_version=2).write(tmp_path, "newer.page")
    PageFactory().events("aten::a", 7).write(tmp_path)
    scrape()
    text = scrape()
    assert list(samples(text, "npu_fallback_events_total").values()) == [7]
    for name in ("npu_fallback_pages_skipped_total", "npu_fallback_pages_unreadable"):
        skipped = {labels[0][1]: count for labels, count in samples(text, name).items() if count}
        assert skipped == {"empty": 1, "magic": 1, "truncated": 1, "version": 1}
    assert len([line for line in caplog.records if line.levelno == logging.WARNING]) == 4


_ODD_NAMES = ['my::"quoted"', "my::new\nline", "my::back\\slash", "my::名前", "my::e\u0301"]


@pytest.mark.parametrize("accept", ["", _OPENMETRICS])
def test_op_names_of_any_characters_give_a_valid_exposition(tmp_path: Path, accept: str) -> None:
    page = PageFactory().slot(b"my::\xff\xfe", events=1)
    for name in _ODD_NAMES:
        page.events(name, 1)
    page.write(tmp_path)
    text = _scraper(tmp_path, accept)()
    found = samples(text, "npu_fallback_events_total")
    names = {dict(labels)["op"] for labels in found}
    assert names == {*_ODD_NAMES, "my::\\xff\\xfe"}
    if not accept:
        assert_promtool_is_silent(text)


def test_300_ops_are_capped_and_the_rest_is_counted(tmp_path: Path, scrape: Scrape) -> None:
    page = PageFactory()
    for number in range(300):
        page.events(f"my::op{number}", 1)
    page.write(tmp_path)
    text = scrape()
    events = samples(text, "npu_fallback_events_total")
    assert (len(events), sum(events.values())) == (101, 300)
    assert samples(text, "npu_fallback_ops_overflowed_total") == {(): 200}


def test_eight_workers_with_twenty_ops_stay_within_1200_series(
    tmp_path: Path, scrape: Scrape
) -> None:
    with ExitStack() as stack:
        for npu in range(8):
            page = PageFactory(davinci_devices=(255, 0, 0, 0), boundary=1)
            for number in range(20):
                page.events(f"aten::op{number}", 1, npu)
            for direction, cause in (
                ("d2h", "fallback"),
                ("h2d", "fallback"),
                ("d2h", "user"),
                ("h2d", "user"),
                ("d2h", "sync"),
            ):
                page.transfer(direction, cause, 1, 1, npu)
            page.sync("aten::_local_scalar_dense", 1, npu)
            stack.enter_context(writer_of(page.write(tmp_path)))
        assert series(scrape()) <= 1200


def test_a_scrape_with_every_family_satisfies_promtool(tmp_path: Path) -> None:
    with writer_of(_full_page().write(tmp_path)):
        assert_promtool_is_silent(_scraper(tmp_path)())
        assert_promtool_is_silent(_scraper(tmp_path, created_lines=True)())


def test_an_empty_folder_satisfies_promtool(scrape: Scrape) -> None:
    assert_promtool_is_silent(scrape())


def test_every_family_is_in_the_catalogue_with_its_type_and_labels(
    tmp_path: Path, scrape: Scrape
) -> None:
    specs = {spec.name: spec for section in CATALOGUE.values() for spec in section}
    with writer_of(_full_page().write(tmp_path)):
        text = scrape()
    for family in families(text).values():
        if family.name.startswith("process_"):
            continue
        suffix = "_total" if family.type == "counter" else ""
        spec = specs[family.name + suffix]
        assert family.type == ("gauge" if spec.type == "info" else spec.type)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(spec.labels)


def test_every_hook_metric_appears_when_a_page_has_everything(
    tmp_path: Path, scrape: Scrape
) -> None:
    with writer_of(_full_page().write(tmp_path)):
        text = scrape()
    for spec in CATALOGUE["From the hook"]:
        assert f"# TYPE {spec.name} " in text


def test_created_lines_are_there_only_when_they_are_wanted(tmp_path: Path) -> None:
    page = PageFactory(created_unix_ns=50 * SECOND_NS)
    page.slot("aten::a", first_seen_unix_ns=70 * SECOND_NS, events=1).write(tmp_path)
    assert "_created" not in _scraper(tmp_path)()
    text = _scraper(tmp_path, created_lines=True)()
    assert list(samples(text, "npu_fallback_events_created").values()) == [70]
    assert set(samples(text, "npu_fallback_kind_events_created").values()) == {50}


def test_openmetrics_ends_as_it_must(tmp_path: Path) -> None:
    _full_page().write(tmp_path)
    assert _scraper(tmp_path, _OPENMETRICS)().endswith("# EOF\n")
