"""``doctor``: say what keeps events from being counted on this machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from .serve import DEFAULT_ADDRESS, listen_address

HELP = "say what keeps fallbacks from being counted here, with the next step"
EXAMPLE = "npu-fallback-exporter doctor"

_HAS_PROBLEMS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "--pages",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="pages folder to look at, may be given several times (default: the one that a server "
        "with this environment would use)",
    )
    parser.add_argument(
        "--npu-smi", metavar="PATH", help="the npu-smi to call (default: the one in PATH)"
    )
    parser.add_argument(
        "--web.listen-address",
        dest="listen_address",
        type=listen_address,
        default=DEFAULT_ADDRESS,
        metavar="[HOST]:PORT",
        help="where an exporter would listen (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="the longest that the import of torch and torch_npu may take (default: %(default)g)",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 without problems, 1 with one."""
    from ..doctor.checkup import examine
    from ..doctor.finding import Status
    from ..doctor.machine import Machine
    from ..doctor.output import as_json, count, lines

    groups = examine(
        Machine(
            environ=dict(os.environ),
            pages=tuple(folder.absolute() for folder in args.pages),
            npu_smi=args.npu_smi,
            torch_seconds=args.timeout,
            host=args.listen_address.host,
            port=args.listen_address.port,
        )
    )
    if args.format == "json":
        print(json.dumps(as_json(groups), indent=2))
    else:
        coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print("\n".join(lines(groups, coloured=coloured)))
    return _HAS_PROBLEMS if count(groups, Status.PROBLEM) else 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 3600")
    return seconds
