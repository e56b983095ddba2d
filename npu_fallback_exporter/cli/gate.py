"""``gate``: the verdict on a canary."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from ..errors import QuestionError, SourceError
from ..gate.limits import Limits
from . import gate_flags

if TYPE_CHECKING:
    from ..gate.sources import Sides
    from ..gate.verdict import Verdict

HELP = "judge whether a candidate falls back more than its baseline"
EXAMPLE = (
    "npu-fallback-exporter gate --prometheus http://prometheus:9090 "
    """--baseline 'namespace="llm",pod=~"api-stable-.*"' """
    """--candidate 'namespace="llm",pod=~"api-canary-.*"' --window 15m --warmup 5m"""
    "\n  npu-fallback-exporter gate --baseline-scrapes old-ready.prom old-end.prom "
    "--candidate-scrapes new-ready.prom http://localhost:10837/metrics"
    "\n\nIt prints the verdict and its reasons as JSON, and exits with 0: pass, 1: fail,\n"
    "3: inconclusive (no data is never a pass), 2: usage error."
)

_USAGE = 2
_EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}  # nosec B105


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    gate_flags.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the verdict as JSON; 0 pass, 1 fail, 3 inconclusive, 2 usage error."""
    from ..gate.verdict import Outcome, Verdict

    try:
        verdict = _verdict(args)
    except QuestionError as error:
        print(f"npu-fallback-exporter: {error}", file=sys.stderr)
        return _USAGE
    except SourceError as error:
        verdict = Verdict(Outcome.INCONCLUSIVE, doubts=(str(error),))
    print(json.dumps(verdict.as_json(), indent=2, allow_nan=False))
    return _EXIT_CODES[verdict.outcome.value]


def _verdict(args: argparse.Namespace) -> Verdict:
    from ..gate.verdict import judge

    limits = Limits(
        args.alpha,
        args.min_operators,
        args.max_fallback_ratio,
        args.max_syncs_ratio,
        args.max_time_ratio,
        args.max_bytes_ratio,
        args.allow,
    )
    through_prometheus = (args.prometheus, args.baseline, args.candidate)
    saved = (args.baseline_scrapes, args.candidate_scrapes)
    if all(through_prometheus) and not any(saved):
        end = args.at or time.time()
        return judge(*_from_prometheus(args, end), limits, end)
    if all(saved) and not any(through_prometheus):
        from ..gate.sources import from_scrapes

        return judge(*from_scrapes(*saved, args.warmup), limits)
    raise QuestionError(
        "two sides are needed, from one place",
        "give --prometheus, --baseline and --candidate, or else --baseline-scrapes and "
        "--candidate-scrapes; see npu-fallback-exporter gate --help",
    )


def _from_prometheus(args: argparse.Namespace, end: float) -> Sides:
    from ..gate.prometheus import Access, Prometheus
    from ..gate.sources import from_prometheus

    access = Access(args.bearer_token_file, args.basic_auth_file, args.ca_file)
    return from_prometheus(
        Prometheus(args.prometheus, access),
        (args.baseline, args.candidate),
        end - args.window if args.since is None else args.since,
        end,
        args.warmup,
        ready=args.since is not None,
    )
