"""Scrapes as files, or fetched now, as the gate reads them."""

from __future__ import annotations

from ..scrapes import samples_in, text_of
from .readings import READ, Counter, Scrape, counter_of


def read(source: str) -> Scrape:
    """Read one scrape in the text format or as OpenMetrics.

    Args:
        source: a path, or an address.

    Raises:
        QuestionError: there is no such file.
        SourceError: no answer, or not a scrape.
    """
    values: dict[Counter, float] = {}
    for sample in samples_in(text_of(source), source):
        if sample.name in READ:
            key = counter_of(sample.name, sample.labels)
            values[key] = values.get(key, 0.0) + sample.value
    return values
