"""The flags of npu-smi, and the sampler that they ask for."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..npu_smi.sampler import NpuSmiSampler

_DEFAULT_INTERVAL_SECONDS = 10.0
# A call takes about a second; below this the tool would be all that the driver does.
_SHORTEST_INTERVAL_SECONDS = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--npu-smi``, ``--npu-smi-interval`` and ``--no-npu-smi``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--npu-smi",
        metavar="PATH",
        help="the npu-smi to call (default: the one in PATH, looked up at every call)",
    )
    which.add_argument(
        "--no-npu-smi", action="store_true", help="never call npu-smi: no device metrics"
    )
    parser.add_argument(
        "--npu-smi-interval",
        type=_seconds,
        default=_DEFAULT_INTERVAL_SECONDS,
        metavar="SECONDS",
        help="from one sample of all chips to the next; no scrape waits for one "
        "(default: %(default)g)",
    )


def sampler_of(args: argparse.Namespace) -> NpuSmiSampler | None:
    """Make the sampler, not started; None with ``--no-npu-smi``."""
    from ..npu_smi.command import NpuSmiCommand
    from ..npu_smi.sampler import NpuSmiSampler

    if args.no_npu_smi:
        return None
    return NpuSmiSampler(NpuSmiCommand(args.npu_smi), interval_seconds=args.npu_smi_interval)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not _SHORTEST_INTERVAL_SECONDS <= seconds < math.inf:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from {_SHORTEST_INTERVAL_SECONDS:g} up"
        )
    return seconds
