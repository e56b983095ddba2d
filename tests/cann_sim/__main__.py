"""``python -m tests.cann_sim build`` and ``eval "$(python -m tests.cann_sim env)"``."""

from __future__ import annotations

import argparse
import shlex
import sys

from tests.cann_sim import build, environment


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cann_sim", description=__doc__)
    parser.add_argument("verb", choices=["build", "env"])
    verb = parser.parse_args().verb
    libraries = build()
    if verb == "build":
        sys.stdout.write(f"{libraries}\n")
    else:
        sys.stdout.write("unset ASCEND_HOME_PATH ASCEND_OPP_PATH ASCEND_CUSTOM_OPP_PATH\n")
        for name in ("LD_LIBRARY_PATH", "ASCEND_GLOBAL_LOG_LEVEL"):
            value = environment(libraries)[name]
            sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
