"""Scrapes as files, or fetched now: what ``curl http://ADDR/metrics`` gives."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import Metric, parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from .errors import QuestionError, SourceError
from .readings import READ, Counter, Scrape, counter_of

_TIMEOUT_SECONDS = 30.0
_SCHEMES = ("http://", "https://")


def read(source: str) -> Scrape:
    """Read one scrape in the text format or as OpenMetrics.

    Args:
        source: a path, or an address.

    Raises:
        QuestionError: there is no such file.
        SourceError: no answer, or not a scrape.
    """
    text = _fetched(source) if source.startswith(_SCHEMES) else _file(source)
    values: dict[Counter, float] = {}
    try:
        for family in _families(text):
            for sample in family.samples:
                if sample.name in READ:
                    key = counter_of(sample.name, sample.labels)
                    values[key] = values.get(key, 0.0) + sample.value
    # The parsers let several kinds of error through.
    except Exception as error:
        what = " ".join(str(error).split())
        raise SourceError(
            f"{source} is not a scrape ({what})", "save what the exporter answers at /metrics"
        ) from error
    return values


def _families(text: str) -> Iterable[Metric]:
    parse = openmetrics_parser if text.rstrip().endswith("# EOF") else parser
    families: Iterable[Metric] = parse.text_string_to_metric_families(text)
    return families


def _file(source: str) -> str:
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise QuestionError(
            f"cannot read {source}: {error.strerror}", "name a saved scrape or an address"
        ) from error
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{source} is not a scrape (not UTF-8)", "save what the exporter answers at /metrics"
        ) from error


def _fetched(source: str) -> str:
    try:
        with urllib.request.urlopen(source, timeout=_TIMEOUT_SECONDS) as reply:  # nosec B310 # noqa: S310
            text: str = reply.read().decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SourceError(
            f"no answer from {source} ({' '.join(str(reason).split())})",
            "check the address and that the exporter runs",
        ) from error
    return text
