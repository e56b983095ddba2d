"""``demo``: the whole thing on one machine, with or without an NPU."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..errors import NpuFallbackError

if TYPE_CHECKING:
    from ..demo.view import View
    from ..demo.workers import Service

HELP = "serve a small model, count its fallbacks, and print a report; needs no NPU"
EXAMPLE = "npu-fallback-exporter demo --seconds 8"

#: Tokens per request: enough for a rate, and few where the number of requests is asked for.
_TOKENS_TIMED, _TOKENS_COUNTED = 16, 2
_LOOK_SECONDS = 1.0
_SHORTEST, _LONGEST = 1.0, 3600.0
_MOST_REQUESTS = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--seconds",
        type=_seconds,
        default=8.0,
        metavar="S",
        help="how long to send requests (default: %(default)g)",
    )
    length.add_argument(
        "--requests",
        type=_requests,
        metavar="N",
        help="send so many requests instead, and compare nothing",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave server and exporter running until Ctrl-C",
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo; 0 when the scrape has exactly the events that the model must cause."""
    from ..demo.device import find_device
    from ..demo.view import View
    from ..demo.workers import Processes

    _end_on_signals()
    view = View()
    view.say("Looking for an NPU, or preparing a simulated one (the first time takes minutes) ...")
    device = find_device()
    if device.simulated:
        view.say("There is none; a copy on the simulated one takes 20 us + 20 GB/s, as over PCIe.")
    _see_to_the_hook(view, device.environ)
    with _folder() as folder, Processes(folder / "logs", folder / "pages") as processes:
        view.say(f"Starting two workers of a small language model on {device.name} ...")
        workers = processes.start_workers(device.count, device.environ)
        exporter = processes.start_exporter(npu_smi=not device.simulated)
        exact = _show(args, view, workers, exporter)
        while args.keep:
            processes.check()
            time.sleep(_LOOK_SECONDS)
    return 0 if exact else 1


def _show(
    args: argparse.Namespace, view: View, workers: Sequence[Service], exporter: Service
) -> bool:
    from ..demo.expected import ORIGINAL, REWRITTEN, expected_events
    from ..demo.scrape import scrape
    from ..demo.traffic import Plan, send

    plan = (
        Plan((ORIGINAL,), _TOKENS_COUNTED, requests=args.requests)
        if args.requests is not None
        else Plan((ORIGINAL, REWRITTEN), _TOKENS_TIMED, seconds=args.seconds)
    )
    with view.progress("Sending requests", plan) as update:
        served = send(workers, plan, update)
    result = scrape(exporter)
    view.ops(result)
    exact = view.comparison(result, expected_events(served, len(workers)))
    if len(served.latencies.get(REWRITTEN, ())) > 1:  # a quartile needs two
        view.cost(served)
    view.next_steps(result, exporter, kept=args.keep)
    return exact


def _see_to_the_hook(view: View, environ: Mapping[str, str]) -> None:
    from ..launch.hook_ready import build_hook, hook_is_built

    if not hook_is_built(environ):
        view.say("Compiling the hook for this PyTorch, once (about a minute) ...")
        build_hook(environ)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder for pages and logs; it stays only when something failed, for the logs."""
    from ..pages.discovery import default_folder

    base = default_folder(os.geteuid()).parent
    folder = Path(tempfile.mkdtemp(prefix="npu-fallback-demo-", dir=base))
    for name in ("pages", "logs"):
        (folder / name).mkdir(mode=0o700)
    try:
        yield folder
    except NpuFallbackError:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _end_on_signals() -> None:
    """Unwind at these signals too, so that everything that was started ends."""

    def end(number: int, _frame: object) -> NoReturn:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _SHORTEST <= value <= _LONGEST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds from {_SHORTEST:g} to {_LONGEST:g}"
        )
    return value


def _requests(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_REQUESTS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_REQUESTS}")
    return int(text)
