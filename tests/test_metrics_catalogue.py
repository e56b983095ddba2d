"""The catalogue of metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_fallback_exporter.metrics import CATALOGUE, MetricSpec, hook
from npu_fallback_exporter.metrics.docs import render
from npu_fallback_exporter.pages import layout

_SPECS = [spec for section in CATALOGUE.values() for spec in section]


def test_the_documentation_is_what_the_catalogue_says() -> None:
    page = Path(__file__).parents[1] / "docs" / "metrics.md"
    assert page.read_text(encoding="utf-8") == render(), (
        "run: python -m npu_fallback_exporter.metrics > docs/metrics.md"
    )


def test_every_metric_is_declared_once() -> None:
    names = [spec.name for spec in _SPECS]
    assert len(set(names)) == len(names)


def test_no_metric_has_a_pid_label() -> None:
    assert not [spec.name for spec in _SPECS if "pid" in spec.labels]


@pytest.mark.parametrize("spec", hook.HOOK_METRICS, ids=lambda spec: spec.name)
def test_every_text_on_the_hook_says_what_is_not_in_it(spec: MetricSpec) -> None:
    assert "Not counted" in spec.help or "Not shown" in spec.help


def test_buckets_are_those_of_the_page() -> None:
    assert len(hook.DURATION.bounds) == layout.DURATION_BUCKETS - 1
    assert len(hook.TRANSFER_SIZE.bounds) == layout.SIZE_BUCKETS - 1


def test_a_counter_without_its_suffix_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks its suffix"):
        MetricSpec("npu_things", "counter", "Things.")
