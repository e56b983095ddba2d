"""``explain OP``: how an operator is routed on the NPU, why, and what to use instead."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..routing.errors import UnknownNameError
from ..routing.table import RoutingTable, load, newest, versions

HELP = "say how an operator is routed on the NPU, since when, and what to use instead"
EXAMPLE = "npu-fallback-exporter explain torch.fmax"

_EXIT_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "op",
        metavar="OP",
        nargs="?",
        help="operator, as in aten::fmax.out, aten::fmax, torch.isin or torchvision::nms",
    )
    parser.add_argument(
        "--torch-npu",
        metavar="VERSION",
        help=f"look in the package's table of this version: {', '.join(versions())} (default: the "
        "dispatcher of this Python where torch_npu is installed, else the newest)",
    )
    parser.add_argument(
        "--diff",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="compare the tables of two versions instead",
    )
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument(
        "--lang", choices=["en", "zh"], default="en", help="language of the remedy in the text"
    )


def run(args: argparse.Namespace) -> int:
    """Print the explanation, or the difference of two versions."""
    if (args.op is None) == (args.diff is None):
        return _usage("give either an operator or --diff BEFORE AFTER: see explain --help")
    try:
        document, text = _difference(*args.diff) if args.diff else _explanation(args)
    except UnknownNameError as error:
        return _usage(str(error))
    print(json.dumps(document, indent=2, ensure_ascii=False) if args.format == "json" else text)
    return 0


def _explanation(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from ..routing.as_json import explanation_json
    from ..routing.as_text import explanation_text
    from ..routing.explanation import explain

    explanation = explain(args.op, _table(args.torch_npu))
    return explanation_json(explanation), explanation_text(explanation, args.lang == "zh")


def _difference(before: str, after: str) -> tuple[dict[str, Any], str]:
    from ..routing.as_json import difference_json
    from ..routing.as_text import difference_text
    from ..routing.difference import difference

    found = difference(load(before), load(after))
    return difference_json(found), difference_text(found)


def _table(version: str | None) -> RoutingTable:
    from ..routing.dump import live_table, torch_npu_is_installed
    from ..routing.errors import TableError

    if version is not None:
        return load(version)
    if not torch_npu_is_installed():
        return newest()
    try:
        return live_table()
    except TableError as error:  # such as torch_npu on a machine without CANN
        print(f"npu-fallback-exporter: {error}; the newest table is used", file=sys.stderr)
        return newest()


def _usage(line: str) -> int:
    print(f"npu-fallback-exporter: {line}", file=sys.stderr)
    return _EXIT_USAGE
