"""``report``: what fell back and what it cost; ``report diff``: before and after."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import QuestionError

if TYPE_CHECKING:
    from ..report.diff import Comparison
    from ..report.model import Report

HELP = "rank the operators that fell back by what they cost; compare before and after"
EXAMPLE = (
    "npu-fallback-exporter report\n"
    "  npu-fallback-exporter report --url http://localhost:10837 --format html > report.html\n"
    "  npu-fallback-exporter report --format json > before.json\n"
    "  npu-fallback-exporter report diff before.json after.json\n"
    "\nA source is a folder of pages, a scrape, a saved report (--format json), or the address of\n"
    "an exporter, its /metrics or its /api/v1/report. Counters go on over restarts of the server:\n"
    "take what happened in between with --since EARLIER, and compare that."
)

_USAGE = 2
_DIFF = "diff"
_FORMATS = ("text", "json", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE | diff BEFORE AFTER",
        help="what to report on (default: the pages of this machine), or two things to compare",
    )
    parser.add_argument(
        "--pages",
        type=Path,
        action="append",
        metavar="DIR",
        help="folder of pages, may be given several times (default: NPU_FALLBACK_DIR, or else "
        "every default folder that can be read)",
    )
    parser.add_argument("--url", metavar="URL", help="address of an exporter")
    parser.add_argument(
        "--since",
        metavar="EARLIER",
        help="a source from before: report only what happened since",
    )
    parser.add_argument(
        "--format", choices=_FORMATS, default="text", help="of the output (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the report, or the comparison; 2 for a usage error."""
    try:
        if args.sources[:1] == [_DIFF]:
            _print_comparison(args)
        else:
            _print_report(args)
    except QuestionError as error:
        print(f"npu-fallback-exporter: {error}", file=sys.stderr)
        return _USAGE
    return 0


def _print_comparison(args: argparse.Namespace) -> None:
    from ..report.diff import compare
    from ..report.sources import report_from

    names = args.sources[1:]
    if len(names) != 2 or args.pages or args.url or args.since:
        raise QuestionError(
            "report diff compares two sources",
            "name them: report diff before.json after.json",
        )
    before, after = map(report_from, names)
    _writers_of_comparisons()[args.format](compare(before, after))


def _print_report(args: argparse.Namespace) -> None:
    from ..report.sources import report_from
    from ..report.window import between

    report = _report(args)
    if args.since is not None:
        report = between(report_from(args.since), report)
    _writers_of_reports()[args.format](report)


def _report(args: argparse.Namespace) -> Report:
    from ..report.sources import report_from, report_from_folders

    places = [*args.sources, *([args.url] if args.url else [])]
    if len(places) + bool(args.pages) > 1:
        raise QuestionError("more than one source is named", "name one, or use report diff")
    return report_from(places[0]) if places else report_from_folders(_folders(args.pages))


def _folders(given: list[Path] | None) -> tuple[Path, ...]:
    from ..pages.discovery import readable_default_folders

    if given:
        return tuple(given)
    own = os.environ.get("NPU_FALLBACK_DIR")
    return (Path(own),) if own else readable_default_folders()


def _writers_of_reports() -> dict[str, Callable[[Report], None]]:
    from ..report import html, json_format, text

    return {
        "text": lambda report: text.show(report, text.console()),
        "json": lambda report: _print_json(json_format.as_json(report)),
        "html": lambda report: print(html.document(report), end=""),
    }


def _writers_of_comparisons() -> dict[str, Callable[[Comparison], None]]:
    from ..report import diff, diff_html, diff_text, text

    return {
        "text": lambda compared: diff_text.show(compared, text.console()),
        "json": lambda compared: _print_json(diff.as_json(compared)),
        "html": lambda compared: print(diff_html.document(compared), end=""),
    }


def _print_json(content: object) -> None:
    print(json.dumps(content, indent=2, allow_nan=False))
