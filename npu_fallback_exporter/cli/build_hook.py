"""``build-hook``: compile the native hook for the PyTorch of this environment.

The library that watches the driver boundary is compiled beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npu_fallback_exporter.instrument.build import build, build_boundary

HELP = "compile the native hook for the PyTorch of this environment"
EXAMPLE = "npu-fallback-exporter build-hook"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for the compiled hook (default: the user's cache); a server finds it there "
        "when NPU_FALLBACK_HOOK_PATH names the folder",
    )
    parser.add_argument("--force", action="store_true", help="compile it although it is there")


def run(args: argparse.Namespace) -> int:
    """Compile, and print where the hook is, then the boundary library."""
    print(build(args.output, force=args.force))
    print(build_boundary(args.output, force=args.force))
    return 0
