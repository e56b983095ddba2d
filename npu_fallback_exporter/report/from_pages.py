"""The pages of some folders to a report: what is live, what has ended, and what is carried over."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from .. import __version__
from ..aggregator import Aggregator
from ..collectors.hook_families import HookFamilies
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import Scan, scan
from ..pages.layout import MAX_OPS
from ..pages.model import Page
from ..pages.npu_identity import NpuLabels
from .from_samples import Samples, report_of
from .model import FAILED, GOOD, PAGES, Call, Report, Source, Worker
from .recordings import calls
from .remedies import remedy_of

_NS = 1e-9
#: A list of more processes than this helps nobody.
_MOST_WORKERS = 64


def report_on_pages(folders: Iterable[Path]) -> Report:
    """Read the folders once. A file that cannot be read costs itself, and is named."""
    places = tuple(folders)
    found = scan(places, ArmFailures())
    aggregator = Aggregator(MAX_OPS)
    skipped = aggregator.observe(found, time.monotonic_ns())
    families = HookFamilies(aggregator.totals).build()
    samples = Samples(sample for family in families for sample in family.samples)
    report = report_of(samples, origin=PAGES, made_unix=time.time(), version=__version__)
    bad = [Source("pages", FAILED, f"{one.path}: {one.error}") for one in skipped]
    since = aggregator.totals.created_unix_ns * _NS
    return replace(
        report,
        since_unix=since or None,
        ops=with_calls(report, calls(found)).ops,
        workers=workers_of(aggregator.live_pages),
        sources=(*_folders(places, found), *bad),
    )


def with_calls(report: Report, known: Mapping[str, Call]) -> Report:
    """Return the report with what is known of its ops: how they are called, what to do instead."""
    return replace(
        report,
        ops=tuple(replace(op, call=known.get(op.op), remedy=remedy_of(op.op)) for op in report.ops),
    )


def workers_of(pages: Iterable[Page]) -> tuple[Worker, ...]:
    """Return what each live process has done, the most expensive first; not all of too many."""
    workers = sorted(map(_worker, pages), key=lambda one: (-one.host_seconds, one.started_unix))
    return tuple(workers[:_MOST_WORKERS])


def _worker(page: Page) -> Worker:
    labels = NpuLabels(page.chips)
    touched = {key.npu for keys in (page.slots, page.syncs, page.transfers) for key in keys}
    return Worker(
        started_unix=page.created_unix_ns * _NS,
        mode=page.mode,
        npus=tuple(labels.label(index) for index in sorted(touched)),
        events=sum(slot.events for slot in page.slots.values()),
        host_seconds=sum(slot.host_ns for slot in page.slots.values()) * _NS,
        pid=page.pid,
    )


def _folders(places: tuple[Path, ...], found: Scan) -> Iterable[Source]:
    read = {folder.path for folder in found.folders}
    for place in places:
        if place in read:
            yield Source("pages", GOOD, str(place))
        elif not place.exists():
            yield Source("pages", FAILED, f"there is no folder {place}")
