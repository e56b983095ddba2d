"""A process with a /dev of its own, in which the device node of one chip is the only one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

needs_private_dev = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="a /dev of its own needs root and unshare",
)

_SCRIPT = """
set -e
mkdir "$1/dev"
mount --rbind /dev "$1/dev"
mount -t tmpfs none /dev
for node in "$1"/dev/*; do ln -s "$node" /dev/; done
touch "/dev/davinci$2"
shift 2
exec "$@"
"""


def with_only_chip(chip: int, folder: Path, command: list[str]) -> list[str]:
    """Return ``command`` so that it sees ``/dev/davinci{chip}`` alone.

    The /dev of the machine is mounted in ``folder``.
    """
    return ["unshare", "-m", "sh", "-c", _SCRIPT, "sh", str(folder), str(chip), *command]
