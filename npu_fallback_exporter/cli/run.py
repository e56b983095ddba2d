"""``run -- CMD``: a server with the hook armed, and a sidecar beside it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ..errors import BuildError, ConfigError
from ..launch.boundary_preload import with_boundary
from ..launch.children import start_bound
from ..launch.hook_ready import build_hook, hook_is_built
from ..launch.supervisor import CommandError, Supervisor
from .main import PROGRAM

HELP = "run a server with the hook armed, and a sidecar beside it"
EXAMPLE = "npu-fallback-exporter run -- python server.py --port 8000"

_USAGE_ERROR = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of this verb."""
    parser.usage = "%(prog)s [flags] -- CMD ..."
    parser.add_argument("--no-serve", action="store_true", help="start no sidecar beside CMD")
    parser.add_argument(
        "--web.listen-address",
        dest="listen_address",
        type=_listen_address,
        metavar="[HOST]:PORT",
        help="where the sidecar answers (default: as of serve)",
    )
    parser.add_argument(
        "--web.config.file",
        dest="config_file",
        metavar="FILE",
        help="TLS and passwords of the sidecar (default: none)",
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="CMD",
        help="the server and its arguments; it gets NPU_FALLBACK_HOOK=1 unless that is set",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command, and return its exit status; 128+n when signal n ended it."""
    command: list[str] = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        _say("no command given: put it after --, as in " + EXAMPLE)
        return _USAGE_ERROR
    environ = {"NPU_FALLBACK_HOOK": "1", **os.environ}
    watched: Mapping[str, str] = environ
    if environ["NPU_FALLBACK_HOOK"] != "0":
        _see_to_the_hook(environ)
        watched = _watch_the_boundary(environ)
    supervisor = Supervisor(on_helper_end=_tell_sidecar_ended)
    try:
        return supervisor.run(
            command,
            watched,
            None if args.no_serve else lambda: _start_sidecar(_sidecar_flags(args), environ),
        )
    except CommandError as error:
        _say(str(error))
        return error.status


def _see_to_the_hook(environ: Mapping[str, str]) -> None:
    """Compile the hook if it is missing. Without one, the server runs on uncounted."""
    try:
        if not hook_is_built(environ):
            _say("compiling the hook for this PyTorch, once (about a minute)")
            build_hook(environ)
    except BuildError as error:
        _say(str(error))


def _watch_the_boundary(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Preload the boundary library. Without it, copies at the driver are not counted."""
    try:
        return with_boundary(environ)
    except BuildError as error:
        _say(str(error))
        return environ


def _sidecar_flags(args: argparse.Namespace) -> list[str]:
    given = {"--web.listen-address": args.listen_address, "--web.config.file": args.config_file}
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def _start_sidecar(flags: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[str]:
    # The sidecar says on stderr where it answers, or in one line why it cannot.
    return start_bound(
        [sys.executable, "-m", "npu_fallback_exporter", "serve", *flags],
        {**environ, "NPU_FALLBACK_HOOK": "0", "NPU_FALLBACK_MODE": ""},
        stdout=2,
    )


def _tell_sidecar_ended(status: int) -> None:
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    _say(
        f"the sidecar {how}; the command runs on, and its counts stay in its page: start another "
        f"one with {PROGRAM} serve"
    )


def _listen_address(text: str) -> str:
    from ..web.listen_address import ListenAddress

    try:
        ListenAddress.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _say(line: str) -> None:
    print(f"{PROGRAM}: {line}", file=sys.stderr, flush=True)
