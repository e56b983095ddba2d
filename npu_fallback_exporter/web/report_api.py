"""``/api/v1/report``: the report as JSON, for the page and for programs."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ..collectors.composite import Snapshot
from ..report.json_format import encode
from ..report.model import Report

#: Many open pages cost no more collections than one.
_FRESH_SECONDS = 2.0
_GZIP_LEVEL = 1


@dataclass
class _Made:
    at: float
    report: Report
    bodies: dict[tuple[bool, bool], bytes] = field(default_factory=dict)

    def body(self, with_details: bool, in_gzip: bool) -> bytes:
        key = (with_details, in_gzip)
        if key not in self.bodies:
            plain = encode(self.report if with_details else self.report.without_details())
            self.bodies[key] = gzip.compress(plain, _GZIP_LEVEL, mtime=0) if in_gzip else plain
        return self.bodies[key]


class ReportApi:
    """Makes the answers, one at a time, outside the event loop.

    Args:
        collect: gives a snapshot, which may be that of a scrape.
        report: makes the report of one.
        monotonic: seconds.
    """

    def __init__(
        self,
        collect: Callable[[], Awaitable[Snapshot]],
        report: Callable[[Snapshot], Report],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collect = collect
        self._report = report
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._made: _Made | None = None

    async def body(self, *, with_details: bool, in_gzip: bool) -> bytes:
        """Return the JSON.

        Args:
            with_details: with call sites and paths.
            in_gzip: compressed.
        """
        async with self._lock:
            made = self._made
            if made is None or self._monotonic() - made.at >= _FRESH_SECONDS:
                snapshot = await self._collect()
                report = await asyncio.to_thread(self._report, snapshot)
                made = self._made = _Made(self._monotonic(), report)
            return await asyncio.to_thread(made.body, with_details, in_gzip)
