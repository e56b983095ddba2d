"""All collectors of one scrape."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from npu_fallback_exporter.collectors.composite import CompositeCollector, Snapshot
from npu_fallback_exporter.web.exposition import encode

from .support.exposition import samples


class _Good:
    name = "good"

    def collect(self) -> Iterable[Metric]:
        return [GaugeMetricFamily("good", "A value.", 1)]


class _FailsHalfway:
    name = "bad"

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("half", "A value.", 1)
        raise OSError("disk\nis gone")


def _text(snapshot: Snapshot) -> str:
    return encode(snapshot, "").body.decode()


def test_a_collector_that_fails_costs_only_itself() -> None:
    text = _text(CompositeCollector([_FailsHalfway(), _Good()]).snapshot())
    assert samples(text, "good") == {(): 1}
    assert samples(text, "half") == {}


def test_success_is_told_for_each_collector() -> None:
    text = _text(CompositeCollector([_FailsHalfway(), _Good()]).snapshot())
    assert samples(text, "npu_fallback_exporter_collector_success") == {
        (("collector", "bad"),): 0,
        (("collector", "good"),): 1,
    }


def test_duration_is_told_for_each_collector() -> None:
    times = iter([10.0, 10.5, 20.0, 22.0])
    text = _text(CompositeCollector([_FailsHalfway(), _Good()], lambda: next(times)).snapshot())
    assert samples(text, "npu_fallback_exporter_collector_duration_seconds") == {
        (("collector", "bad"),): 0.5,
        (("collector", "good"),): 2,
    }


def test_a_snapshot_says_why_a_collector_failed_in_one_line() -> None:
    snapshot = CompositeCollector([_FailsHalfway(), _Good()]).snapshot()
    assert snapshot.failures == {"bad": "OSError: disk is gone"}


def test_a_failure_that_goes_on_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    composite = CompositeCollector([_FailsHalfway()])
    for _ in range(3):
        composite.snapshot()
    assert len([line for line in caplog.records if line.levelno == logging.ERROR]) == 1


def test_a_family_that_cannot_be_written_costs_only_itself() -> None:
    broken = GaugeMetricFamily("broken", "A value.", labels=["process"])
    broken.add_metric(["\udcff"], 1)
    text = _text(Snapshot((broken, *_Good().collect())))
    assert samples(text, "good") == {(): 1}
    assert "broken" not in text
