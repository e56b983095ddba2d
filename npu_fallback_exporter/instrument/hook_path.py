"""Where compiled hooks are kept, and what they are called.

A hook fits one version of PyTorch, one C++ ABI and one architecture; all three, and a hash of the
sources, are in its file name, so that a hook is never loaded into a PyTorch it was not made for.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "csrc"

BOUNDARY_SOURCES = SOURCES / "boundary"
BOUNDARY_HEADER = BOUNDARY_SOURCES / "boundary.h"

#: Headers that come before all others, in the hook and in the boundary library.
PORTABLE = SOURCES / "portable"

#: Hooks that came with the package.
PACKAGED = Path(__file__).parent.parent / "hooks"


@dataclass(frozen=True)
class HookTarget:
    """What a hook is compiled for.

    Attributes:
        torch_version: without a local part, such as ``2.13.0``.
        cxx11_abi: whether PyTorch was compiled with libstdc++'s C++11 ABI.
        machine: such as ``x86_64`` or ``aarch64``.
    """

    torch_version: str
    cxx11_abi: bool
    machine: str

    @property
    def file_name(self) -> str:
        """The name of the compiled hook."""
        abi = "" if self.cxx11_abi else "-oldabi"
        return f"hook-torch{self.torch_version}-{self.machine}{abi}-{source_hash()}.so"

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version of PyTorch."""
        major, minor = self.torch_version.split(".")[:2]
        return int(major), int(minor)

    @classmethod
    def of_this_process(cls) -> HookTarget:
        """Return the target for the PyTorch that this process has imported or can import."""
        import torch

        return cls(
            torch_version=str(torch.__version__).split("+")[0],
            cxx11_abi=bool(torch._C._GLIBCXX_USE_CXX11_ABI),
            machine=platform.machine(),
        )


@functools.cache
def source_hash() -> str:
    """Return 12 hex digits that change with every change of the native sources."""
    # boundary.h is the boundary library's interface, which the hook calls.
    return _digest([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.h"), BOUNDARY_HEADER])


@functools.cache
def boundary_file_name() -> str:
    """Return the name of the compiled boundary library, which fits every PyTorch."""
    return f"boundary-{platform.machine()}-{_digest(BOUNDARY_SOURCES.iterdir())}.so"


def _digest(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted([*sources, *PORTABLE.rglob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def find_boundary(preferred: Path | None) -> Path | None:
    """Return the compiled boundary library, or ``None``."""
    return _first_file(boundary_file_name(), preferred)


def cache_folder() -> Path:
    """Return the user's own folder of compiled hooks. It need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~").expanduser() / ".cache")
    return Path(base) / "npu-fallback-exporter" / "hooks"


def search_folders(preferred: Path | None) -> Iterator[Path]:
    """Yield the folders in which a hook is looked for, best first."""
    if preferred is not None:
        yield preferred
    yield PACKAGED
    yield cache_folder()


def find(target: HookTarget, preferred: Path | None) -> Path | None:
    """Return the compiled hook for ``target``, or ``None``."""
    return _first_file(target.file_name, preferred)


def _first_file(name: str, preferred: Path | None) -> Path | None:
    paths = (folder / name for folder in search_folders(preferred))
    return next((path for path in paths if path.is_file()), None)
