"""Where a report comes from: folders of pages, a scrape, a saved report, an exporter."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from .. import __version__
from ..errors import QuestionError
from ..scrapes import is_address, samples_in, text_of
from .from_pages import report_on_pages, with_calls
from .from_samples import Samples, report_of
from .json_format import decode, is_report
from .model import SCRAPE, Report

_REPORT_PATH = "api/v1/report"


def report_from(source: str) -> Report:
    """Read a report from one place.

    Args:
        source: a folder of pages; a file with a scrape or a saved report; the address of either,
            or of an exporter.

    Raises:
        QuestionError: there is no such file.
        SourceError: it gives no report.
    """
    if not is_address(source) and Path(source).is_dir():
        return report_from_folders([Path(source)])
    place = _place_in(source) if is_address(source) else source
    text = text_of(place)
    if is_report(text):
        return decode(text, place)
    samples = Samples(samples_in(text, place))
    made = time.time() if is_address(place) else Path(place).stat().st_mtime
    report = report_of(samples, origin=SCRAPE, made_unix=made, version=__version__)
    return with_calls(report, {})


def report_from_folders(folders: Iterable[Path]) -> Report:
    """Read a report from folders of pages.

    Raises:
        QuestionError: there is no folder at all.
    """
    places = tuple(folders)
    if not any(place.is_dir() for place in places):
        named = ", ".join(map(str, places)) or "under /dev/shm or the temporary directory"
        raise QuestionError(
            f"there is no folder of pages ({named})",
            "start the server with NPU_FALLBACK_HOOK=1, or name its folder with --pages, "
            "or an exporter with --url",
        )
    return report_on_pages(places)


def _place_in(address: str) -> str:
    """Return the address of the report, where an exporter as a whole is named."""
    parts = urlsplit(address)
    if parts.path in {"", "/"}:
        return parts._replace(path=f"/{_REPORT_PATH}").geturl()
    return address
