"""``eval "$(python -m tests.other_versions VERSION FOLDER)"``: in that shell, the version runs.

VERSION is torch_npu's; FOLDER keeps what was downloaded. The simulated device comes from
``eval "$(python -m tests.cann_sim env)"``, before it.
"""

from __future__ import annotations

import os
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.other_versions.prepare import prepare


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    wanted, folder = sys.argv[1], Path(sys.argv[2]).expanduser().resolve()
    if wanted != _installed():
        paths = [*map(str, prepare(wanted, folder)), os.environ.get("PYTHONPATH", "")]
        search = os.pathsep.join(filter(None, paths))
        sys.stdout.write(f"export PYTHONPATH={shlex.quote(search)}\n")
    return 0


def _installed() -> str | None:
    try:
        return version("torch_npu")
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    raise SystemExit(main())
