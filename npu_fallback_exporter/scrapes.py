"""Texts from a file or an address, and scrapes in them: what ``curl http://ADDR/metrics`` gives."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import Metric, parser
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.samples import Sample

from .errors import QuestionError, SourceError

_TIMEOUT_SECONDS = 30.0
_SCHEMES = ("http://", "https://")


def is_address(source: str) -> bool:
    """Whether a source is an address rather than a path."""
    return source.startswith(_SCHEMES)


def text_of(source: str) -> str:
    """Read a file, or fetch an address.

    Raises:
        QuestionError: there is no such file.
        SourceError: no answer, or not UTF-8.
    """
    return _fetched(source) if is_address(source) else _file(source)


def samples_in(text: str, source: str) -> Iterator[Sample]:
    """Yield the samples of a scrape in the text format, or as OpenMetrics.

    Args:
        text: the scrape.
        source: where it comes from, for the error.

    Raises:
        SourceError: it is not a scrape; perhaps after some samples.
    """
    try:
        for family in _families(text):
            yield from family.samples
    # The parsers let several kinds of error through.
    except Exception as error:
        what = " ".join(str(error).split())
        raise SourceError(
            f"{source} is not a scrape ({what})", "save what the exporter answers at /metrics"
        ) from error


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
