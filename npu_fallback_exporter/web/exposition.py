"""A snapshot as bytes, in the format and the coding that the client asks for."""

from __future__ import annotations

import gzip
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder

from ..collectors.composite import Snapshot

_log = logging.getLogger(__name__)

# A scrape is a few hundred kilobytes of very regular text: more effort buys nothing.
_GZIP_LEVEL = 1


@dataclass(frozen=True)
class Exposition:
    """The body of an answer, and what it is."""

    content_type: str
    body: bytes


class Answer:
    """A snapshot, written once for each format that its clients ask for. Safe for threads."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._lock = threading.Lock()
        self._written: dict[tuple[str, bool], Exposition] = {}

    def exposition(self, accept: str, in_gzip: bool) -> Exposition:
        """Write the snapshot as :func:`encode` does, compressed if `in_gzip`."""
        _, content_type = _choose(accept)
        with self._lock:
            key = (content_type, in_gzip)
            if key not in self._written:
                plain = self._written.get((content_type, False)) or encode(self.snapshot, accept)
                self._written[content_type, False] = plain
                if in_gzip:
                    self._written[key] = compress(plain)
            return self._written[key]


def encode(snapshot: Snapshot, accept: str) -> Exposition:
    """Write the snapshot as text, or as OpenMetrics if `accept` asks for it.

    A family that cannot be written is left out and logged; the others are there.

    Args:
        snapshot: what to write.
        accept: value of the header Accept; empty: none was sent.
    """
    encoder, content_type = _choose(accept)
    try:
        return Exposition(content_type, encoder(snapshot))
    except Exception:
        writable = tuple(family for family in snapshot.metrics if _can_write(encoder, family))
        return Exposition(content_type, encoder(Snapshot(writable)))


def compress(exposition: Exposition) -> Exposition:
    """Return the same with its body in gzip."""
    body = gzip.compress(exposition.body, _GZIP_LEVEL, mtime=0)
    return Exposition(exposition.content_type, body)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the header Accept-Encoding allows gzip.

    Args:
        accept_encoding: its value; empty: none was sent.
    """
    for item in accept_encoding.split(","):
        coding, *parameters = (part.strip().lower() for part in item.split(";"))
        if coding == "gzip":
            return not any(_is_zero_weight(parameter) for parameter in parameters)
    return False


def _is_zero_weight(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in {"", "0.", "."}


_Encoder = Callable[[Snapshot], bytes]


def _choose(accept: str) -> tuple[_Encoder, str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # a version in it that is not one
        return choose_encoder("")


def _can_write(encoder: _Encoder, family: Metric) -> bool:
    try:
        encoder(Snapshot((family,)))
    except Exception as error:
        _log.error("left out %s: %s", family.name, type(error).__name__)
        return False
    return True
