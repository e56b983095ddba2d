"""``audit``: which operators of a model would fall back, before any NPU is touched."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..audit.errors import AuditError
from ..errors import NpuFallbackError

if TYPE_CHECKING:
    from ..audit.findings import Audit
    from ..routing.table import RoutingTable

HELP = "say which operators of a model would fall back, without an NPU"
EXAMPLE = (
    "npu-fallback-exporter audit mymodels:build --input f32[2,16,64]\n"
    "  npu-fallback-exporter audit --hf ./Llama-2-7b --generate 4 --fail-on new "
    "--baseline audit.json\n"
    "  npu-fallback-exporter audit serve_once.py -- --batch 2"
    "\n\nExit codes: 0: done, 1: --fail-on found an operator, 2: the question cannot be answered."
)

_FAILED = 1
_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="MODULE:FACTORY|SCRIPT.py",
        help="a function that returns a model, or a program",
    )
    parser.add_argument("arguments", nargs="*", metavar="ARG", help="of the program, after --")
    parser.add_argument(
        "--hf",
        type=Path,
        metavar="CONFIG_DIR",
        help="folder with the config.json of a transformers model; no weights are needed",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SPEC",
        help="an input, in order or with its name: f32[2,16,64], input_ids=i64[1,16]:0..99",
    )
    parser.add_argument(
        "--generate", type=_steps, default=0, metavar="N", help="with --hf: decoding steps as well"
    )
    parser.add_argument("--sample", action="store_true", help="with --generate: draw the tokens")
    parser.add_argument("--dtype", metavar="DTYPE", help="with --hf: of the weights, as in bf16")
    parser.add_argument(
        "--torch-npu", metavar="VERSION", help="whose table (default: the installed, or the newest)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--fail-on",
        choices=("new", "any"),
        help="exit with 1 when an operator falls back that is not allowed (new: nor in baseline)",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="GLOB",
        help="operators that may fall back: aten::isin*, torch.isin; may be given several times",
    )
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="operators that did before")
    parser.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="write those that do now"
    )
    parser.add_argument(
        "--dump-table",
        type=Path,
        metavar="FILE",
        help="instead: write the routing table of the torch_npu that is installed here",
    )


def run(args: argparse.Namespace) -> int:
    """Print what was found; 0 done, 1 failed by --fail-on, 2 no answer."""
    try:
        return _dump(args.dump_table) if args.dump_table else _audit(args)
    except NpuFallbackError as error:
        print(f"npu-fallback-exporter: {error}", file=sys.stderr)
        return _USAGE


def _dump(path: Path) -> int:
    from ..routing.dump import write_table

    try:
        write_table(path)
    except OSError as error:
        raise AuditError(f"{path} cannot be written ({error})", "choose another file") from error
    print(f"wrote {path}")
    return 0


def _audit(args: argparse.Namespace) -> int:
    from ..audit import expected
    from ..audit.as_json import as_json
    from ..audit.as_text import as_text
    from ..audit.versions import table_of

    table = table_of(args.torch_npu)
    allowed = expected.allow_globs(args.allow, table.entries)
    baseline = expected.read_baseline(args.baseline) if args.baseline else frozenset()
    audit = expected.with_standings(_answer(args, table), allowed, baseline)
    failing = expected.failing(audit, args.fail_on)
    if args.write_baseline:
        expected.write_baseline(args.write_baseline, audit)
    if args.format == "json":
        print(json.dumps(as_json(audit, failing), indent=2))
    else:
        print(as_text(audit, failing))
    return _FAILED if failing else 0


def _answer(args: argparse.Namespace, table: RoutingTable) -> Audit:
    from ..audit.question import Question, answer

    if bool(args.target) == bool(args.hf):
        raise AuditError(
            "one thing to audit is needed",
            "give module:factory, a script or --hf; see npu-fallback-exporter audit --help",
        )
    for flag in ("sample", "dtype", "generate"):
        if getattr(args, flag) and not args.hf:
            raise AuditError(f"--{flag} is of --hf", "leave it out, or give --hf CONFIG_DIR")
    return answer(
        Question(
            args.target,
            args.hf,
            tuple(args.input),
            tuple(args.arguments),
            args.generate,
            args.sample,
            args.dtype,
        ),
        table,
    )


def _steps(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of steps")
    return int(text)
