"""Scrapes as tests read them, and the judgement of promtool on them."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from prometheus_client import Metric, parser
from prometheus_client.openmetrics import parser as openmetrics_parser


def families(text: str) -> dict[str, Metric]:
    """Families of a scrape by name; OpenMetrics is known by how it ends."""
    parse = openmetrics_parser if text.endswith("# EOF\n") else parser
    return {family.name: family for family in parse.text_string_to_metric_families(text)}


def samples(text: str, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Values of one metric by its labels, sorted by label name."""
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in families(text).values()
        for sample in family.samples
        if sample.name == name
    }


def series(text: str) -> int:
    """How many series a scrape has."""
    return sum(1 for line in text.split("\n") if line and not line.startswith("#"))


def assert_promtool_is_silent(text: str) -> None:
    """Fail on anything that ``promtool check metrics`` has to say."""
    result = subprocess.run(
        [_promtool(), "check", "metrics"],
        input=text.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def _promtool() -> str:
    found = shutil.which("promtool")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        # Debian's package has promtool and starts no service here.
        subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", "prometheus"],
            capture_output=True,
            timeout=240,
            check=False,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is missing and cannot be installed: apt-get install prometheus")
    return found
