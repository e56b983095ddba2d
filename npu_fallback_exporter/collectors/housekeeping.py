"""Looking at the pages now and then although nobody scrapes."""

from __future__ import annotations

import logging
import threading

from .fallback import FallbackCollector

_log = logging.getLogger(__name__)

# A server that crashes every few seconds leaves a page each time, and Prometheus may be away.
_INTERVAL_SECONDS = 30.0


class Housekeeping:
    """A thread that retires the pages of processes that have ended, while the block runs."""

    def __init__(self, collector: FallbackCollector, interval: float = _INTERVAL_SECONDS) -> None:
        self._collector = collector
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def __enter__(self) -> Housekeeping:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(self._interval)

    def _run(self) -> None:
        while not self._ended.wait(self._interval):
            try:
                self._collector.look_unless_seen_within(self._interval)
            except Exception as error:  # a scrape will fail in the same way, and say so
                _log.debug("housekeeping failed: %s: %s", type(error).__name__, error)
