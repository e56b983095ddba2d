"""What the exporter says, read as Prometheus reads it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from npu_fallback_exporter.demo.workers import Service

_SCRAPE_SECONDS = 30.0


@dataclass
class OpRow:
    """One operator over all workers."""

    op: str
    kind: str
    events: int = 0
    bytes_d2h: int = 0
    bytes_h2d: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Scrape:
    """One answer of the exporter.

    Attributes:
        text: as it came.
        rows: per operator and kind, the most expensive first.
        total: events of all operators, from the counter that alerts and gates use.
    """

    text: str
    rows: tuple[OpRow, ...]
    total: int


def scrape(exporter: Service) -> Scrape:
    """Ask the exporter for its metrics.

    Raises:
        DemoError: it does not answer.
    """
    connection = http.client.HTTPConnection("127.0.0.1", exporter.port, timeout=_SCRAPE_SECONDS)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise exporter.failure(f"did not answer: {error}") from error
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise exporter.failure(f"answered with status {response.status}")
    return parse(text)


def parse(text: str) -> Scrape:
    """Read the text format."""
    rows: dict[tuple[str, str], OpRow] = {}
    total = 0
    for sample in _samples(text):
        if sample.name == "npu_fallback_kind_events_total":
            total += int(sample.value)
        elif sample.labels.get("op") and sample.labels.get("kind"):
            key = (sample.labels["op"], sample.labels["kind"])
            _add(rows.setdefault(key, OpRow(*key)), sample)
    ranked = sorted(
        (row for row in rows.values() if row.events), key=lambda row: (-row.seconds, row.op)
    )
    return Scrape(text, tuple(ranked), total)


def _add(row: OpRow, sample: Sample) -> None:
    match sample.name:
        case "npu_fallback_events_total":
            row.events += int(sample.value)
        case "npu_fallback_transfer_bytes_total" if sample.labels["direction"] == "d2h":
            row.bytes_d2h += int(sample.value)
        case "npu_fallback_transfer_bytes_total":
            row.bytes_h2d += int(sample.value)
        case "npu_fallback_duration_seconds_sum":
            row.seconds += sample.value


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples
