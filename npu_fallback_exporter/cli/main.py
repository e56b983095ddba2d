"""``npu-fallback-exporter VERB``: finds the verb, runs it, and says in one line what failed."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol, cast

from .. import __version__
from ..errors import NpuFallbackError

PROGRAM = "npu-fallback-exporter"

# A verb is the module of the same name beside this one; it is imported when it is asked for.
VERBS = (
    "serve",
    "run",
    "demo",
    "build-hook",
    "gate",
    "audit",
    "report",
    "repro",
    "explain",
    "doctor",
)

_EXIT_FAILURE = 1
_EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130


class Verb(Protocol):
    """What the module of a verb offers."""

    HELP: str  # one line, lower case
    EXAMPLE: str  # a command line that works

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its flags."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code; raises NpuFallbackError for what a user can mend."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code.

    Args:
        argv: the arguments without the program; None: those of this process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except NpuFallbackError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_FAILURE
    except Exception as error:
        line = " ".join(str(error).split())
        return _fail(f"{type(error).__name__}: {line}: this is a defect, please report this line")


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(_overview(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else _EXIT_USAGE
    name, *rest = arguments
    if name == "--version":
        print(f"{PROGRAM} {__version__}")
        return 0
    if name not in VERBS:
        return _unknown(name)
    verb = _verb(name)
    parser = _Parser(
        prog=f"{PROGRAM} {name}",
        description=f"{verb.HELP[0].upper()}{verb.HELP[1:]}.",
        epilog=f"example:\n  {verb.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_arguments(parser)
    return verb.run(parser.parse_args(rest))


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line; argparse would put the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(_EXIT_USAGE, f"{PROGRAM}: {message}: see {self.prog} --help\n")


def _verb(name: str) -> Verb:
    package = __name__.rpartition(".")[0]
    return cast("Verb", import_module(f"{package}.{name.replace('-', '_')}"))


def _overview() -> str:
    width = max(map(len, VERBS))
    lines = (f"  {name:<{width}}  {_verb(name).HELP}" for name in VERBS)
    return "\n".join(
        (f"usage: {PROGRAM} VERB ...", "", *lines, "", f"{PROGRAM} VERB --help has an example.")
    )


def _unknown(name: str) -> int:
    near = difflib.get_close_matches(name, VERBS)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose one of {', '.join(VERBS)}"
    print(f"{PROGRAM}: unknown verb {name!r}: {hint}", file=sys.stderr)
    return _EXIT_USAGE


def _fail(line: str) -> int:
    print(f"{PROGRAM}: {line}", file=sys.stderr)
    return _EXIT_FAILURE
