"""Command-line tools that the ``dev`` extra installs, or that the machine has."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def tool(name: str) -> str:
    """Path of the tool; fails the test where there is none."""
    beside_python = Path(sys.executable).parent / name
    found = str(beside_python) if beside_python.is_file() else shutil.which(name)
    assert found, f"no {name}: pip install --editable '.[dev]'"
    return found
