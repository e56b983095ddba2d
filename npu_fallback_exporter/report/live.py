"""The report of a running exporter, from the same collection as a scrape."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from .. import __version__
from ..collectors.composite import Snapshot
from ..collectors.fallback import FallbackCollector
from ..history.sampler import HistorySampler
from ..npu_smi.sampler import NpuSmiSampler
from .call_sites import CallSites
from .from_pages import with_calls, workers_of
from .from_samples import Samples, report_of
from .model import EXPORTER, FAILED, Report, Source

_NS = 1e-9
_FOREVER = float("inf")


class LiveReports:
    """Makes reports. Not safe for use by several threads at once.

    Args:
        fallback: has the live pages.
        history: of this exporter.
        npu_smi: says why there is no sample; None: it is not asked.
        call_sites: how operators were called; None: nobody may know.
        wall_clock: Unix time in seconds.
    """

    def __init__(
        self,
        fallback: FallbackCollector,
        history: HistorySampler,
        npu_smi: NpuSmiSampler | None = None,
        call_sites: CallSites | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._fallback = fallback
        self._history = history
        self._npu_smi = npu_smi
        self._call_sites = call_sites
        self._wall_clock = wall_clock

    def report(self, snapshot: Snapshot) -> Report:
        """Return the report of one collection. Raises SourceError if it has no fallback metrics."""
        report = report_of_snapshot(snapshot, self._wall_clock())
        known = self._call_sites.of(op.op for op in report.ops) if self._call_sites else {}
        _, created_ns = self._fallback.read(lambda totals: totals.created_unix_ns, _FOREVER)
        return replace(
            with_calls(report, known),
            since_unix=created_ns * _NS or None,
            workers=workers_of(self._fallback.live_pages),
            sources=tuple(self._with_trouble(source) for source in report.sources),
            history=self._history.history(),
        )

    def _with_trouble(self, source: Source) -> Source:
        if source.name != "npu_smi" or source.state != FAILED or self._npu_smi is None:
            return source
        return replace(source, detail=self._npu_smi.snapshot().trouble)


def report_of_snapshot(snapshot: Snapshot, made_unix: float) -> Report:
    """Return what one collection alone tells.

    A collection in which the pages could not be read gives a report that says so.
    """
    samples = Samples(sample for family in snapshot.metrics for sample in family.samples)
    if "fallback" in snapshot.failures:
        report = Report(made_unix, EXPORTER, __version__)
        sources = (Source(name, FAILED) for name in snapshot.failures)
        report = replace(report, sources=tuple(sources))
    else:
        report = report_of(samples, origin=EXPORTER, made_unix=made_unix, version=__version__)
    return replace(
        report,
        sources=tuple(
            replace(source, detail=snapshot.failures.get(source.name, ""))
            for source in report.sources
        ),
    )
