"""What the compiled hook and the boundary library ask of the C and C++ libraries they load beside.

Serving images are older than the machines that hooks are compiled on: glibc 2.28 and the libstdc++
of GCC 8 are the oldest that are promised.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_fallback_exporter.instrument.build import build, build_boundary

NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}


def needed(library: Path) -> set[tuple[str, tuple[int, ...]]]:
    """Symbol versions that a library needs, as in ("GLIBC", (2, 14))."""
    command = ["readelf", "--version-info", "--wide", library]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Name: ([A-Z]+)_([0-9.]+)", text)
    return {(name, tuple(map(int, version.split(".")))) for name, version in found}


@pytest.mark.parametrize("compile_it", [build, build_boundary], ids=["hook", "boundary"])
def test_no_symbol_is_newer_than_the_oldest_libraries_that_are_promised(
    compile_it: Callable[[], Path],
) -> None:
    versions = needed(compile_it())
    assert any(name == "GLIBC" for name, _ in versions)
    assert {(name, version) for name, version in versions if version > NEWEST[name]} == set()
