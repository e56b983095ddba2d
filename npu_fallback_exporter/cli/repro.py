"""``repro OP``: print a script that calls an operator as a server has called it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

HELP = "print a script that calls an operator as it was recorded, for a bug report"
EXAMPLE = "npu-fallback-exporter repro aten::fmax.out > fmax.py && python fmax.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "op", metavar="OP", help="operator, as in aten::fmax.out, aten::fmax or torch.fmax"
    )
    parser.add_argument(
        "--pages",
        type=Path,
        action="append",
        metavar="DIR",
        help="folder of pages, may be given several times (default: NPU_FALLBACK_DIR, or else "
        "every default folder that can be read)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from ..report.recordings import recordings
    from ..report.repro import choose, script

    recorded, seen = recordings(_folders(args.pages))
    print(script(choose(args.op, recorded, seen)), end="")
    return 0


def _folders(given: list[Path] | None) -> tuple[Path, ...]:
    from ..pages.discovery import readable_default_folders

    if given:
        return tuple(given)
    own = os.environ.get("NPU_FALLBACK_DIR")
    return (Path(own),) if own else readable_default_folders()
