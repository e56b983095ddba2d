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
        path = environment(libraries)["LD_LIBRARY_PATH"]
        sys.stdout.write("unset ASCEND_HOME_PATH ASCEND_OPP_PATH ASCEND_CUSTOM_OPP_PATH\n")
        sys.stdout.write(f"export LD_LIBRARY_PATH={shlex.quote(path)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
