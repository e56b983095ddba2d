"""The flags of ``gate``."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from ..gate.limits import Limits

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+")
_LONGEST_SECONDS = 366 * 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    _add_prometheus(parser.add_argument_group("through Prometheus"))
    _add_scrapes(parser.add_argument_group("from saved scrapes"))
    _add_limits(parser.add_argument_group("limits"))


def _add_prometheus(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--prometheus", type=_url, metavar="URL", help="its address")
    for side, meaning in (("baseline", "what runs today"), ("candidate", "what is to replace it")):
        group.add_argument(
            f"--{side}", metavar="SELECTOR", help=f"label matchers of the targets of {meaning}"
        )
    start = group.add_mutually_exclusive_group()
    start.add_argument(
        "--window",
        type=_duration,
        default=900.0,
        metavar="DURATION",
        help="how far back to look (default: 15m)",
    )
    start.add_argument(
        "--since",
        type=_moment,
        metavar="TIME",
        help="look back to this time instead, at which all was ready: RFC 3339 or Unix seconds",
    )
    group.add_argument(
        "--at", type=_moment, metavar="TIME", help="end of the window (default: now)"
    )
    group.add_argument(
        "--warmup",
        type=_duration,
        default=300.0,
        metavar="DURATION",
        help="leave out so long after a process has started; 0s counts everything (default: 5m)",
    )
    for name, meaning in (
        ("bearer-token-file", "a token"),
        ("basic-auth-file", "user:password"),
        ("ca-file", "the certificates to trust"),
    ):
        group.add_argument(
            f"--prometheus.{name}",
            dest=name.replace("-", "_"),
            type=Path,
            metavar="FILE",
            help=f"file with {meaning}",
        )


def _add_scrapes(group: argparse._ArgumentGroup) -> None:
    for side in ("baseline", "candidate"):
        group.add_argument(
            f"--{side}-scrapes",
            nargs=2,
            action="append",
            metavar=("READY", "END"),
            help="two scrapes of one exporter, files or addresses: when the server was ready, and "
            "at the end; may be given once for each exporter",
        )


def _add_limits(group: argparse._ArgumentGroup) -> None:
    default = Limits()
    group.add_argument(
        "--allow",
        type=_globs,
        default=(),
        metavar="GLOBS",
        help="ops that may fall back: torchvision::nms,aten::isin*",
    )
    group.add_argument(
        "--min-operators",
        type=_positive,
        default=default.min_operators,
        metavar="N",
        help="operators that each side must have run (default: %(default)g)",
    )
    group.add_argument(
        "--alpha",
        type=_chance,
        default=default.alpha,
        metavar="P",
        help="how often an equal candidate may fail (default: %(default)g)",
    )
    for name, what in (
        ("fallback", "fallbacks, refusals, errors"),
        ("syncs", "waits for a value"),
        ("time", "host time of fallbacks"),
        ("bytes", "bytes between host and device"),
    ):
        group.add_argument(
            f"--max-{name}-ratio",
            type=_ratio,
            default=getattr(default, f"{name}_ratio"),
            metavar="R",
            help=f"candidate to baseline, {what} per operator (default: %(default)g)",
        )


def _url(text: str) -> str:
    if not re.match(r"https?://[^/]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an address like http://prometheus:9090")
    return text


def _duration(text: str) -> float:
    if text == "0":
        return 0.0
    if not _DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration like 90s, 15m or 1h30m")
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhdw])", text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than a year")
    return seconds


def _moment(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a time like 2025-01-31T12:00:00Z or Unix seconds"
            ) from None
        value = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    if not 0 < value < 1e11:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds since 1970")
    return value


def _globs(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _number(allowed: Callable[[float], bool], meaning: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not allowed(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
        return value

    return parse


_positive = _number(lambda value: 0 < value < math.inf, "a number above 0")
_chance = _number(lambda value: 0 < value < 0.5, "a probability above 0 and below 0.5")
_ratio = _number(lambda value: value >= 1, "a number of at least 1 (inf: no limit)")
