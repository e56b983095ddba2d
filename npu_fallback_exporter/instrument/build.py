"""Compiling the native hook for the PyTorch of this environment, and the boundary library."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from npu_fallback_exporter.errors import BuildError
from npu_fallback_exporter.instrument.hook_path import (
    BOUNDARY_SOURCES,
    PORTABLE,
    SOURCES,
    HookTarget,
    boundary_file_name,
    cache_folder,
    find,
    find_boundary,
)

#: Older versions lack ``OperatorHandle::getComputedKernelForDispatchKey`` and were never tried.
OLDEST_TORCH = (2, 9)

_COMPILE_SECONDS = 600


def build(folder: Path | None = None, *, force: bool = False) -> Path:
    """Compile the hook if it is not there yet, and return its path.

    Safe when several processes start at once: one compiles, the others wait for it and take the
    result, which appears under its name only when it is complete.

    Args:
        folder: where to put it; the user's cache when left out.
        force: compile although it is there.

    Raises:
        BuildError: no PyTorch, an old one, no compiler, a folder that cannot be written, or a
            compilation that fails.
    """
    target = _target()
    folder = cache_folder() if folder is None else folder
    path = folder / target.file_name
    with _one_at_a_time(folder):
        if force or find(target, folder) != path:
            _compile(_hook_command(target), path)
    return path


def build_boundary(folder: Path | None = None, *, force: bool = False) -> Path:
    """Compile the boundary library if it is not there yet, and return its path.

    It is plain C without PyTorch, so that any process can carry it. Arguments, and what is safe,
    as of :func:`build`.

    Raises:
        BuildError: no compiler, a folder that cannot be written, or a compilation that fails.
    """
    folder = cache_folder() if folder is None else folder
    path = folder / boundary_file_name()
    with _one_at_a_time(folder):
        if force or find_boundary(folder) != path:
            _compile(boundary_command(), path)
    return path


def _target() -> HookTarget:
    try:
        with _no_backends():
            target = HookTarget.of_this_process()
    except ImportError as error:
        raise BuildError(
            "PyTorch cannot be imported, and the hook is compiled for the one that is installed "
            f"({error})",
            "run this in the environment of your server",
        ) from error
    if target.version < OLDEST_TORCH:
        raise BuildError(
            f"PyTorch {target.torch_version} is too old for the hook",
            f"use PyTorch {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} or newer",
        )
    return target


@contextlib.contextmanager
def _no_backends() -> Iterator[None]:
    """Import PyTorch alone: the machine that compiles may have no CANN for torch_npu to load."""
    variable = "TORCH_DEVICE_BACKEND_AUTOLOAD"
    before = os.environ.get(variable)
    os.environ[variable] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise BuildError(
            f"cannot put the hook into {folder} ({error.strerror})",
            "name a folder that can be written with --output",
        ) from error


def _compiler(variable: str, language: str, names: Sequence[str]) -> str:
    wanted = os.environ.get(variable)
    for name in [wanted] if wanted else names:
        found = shutil.which(name)
        if found:
            return found
    raise BuildError(
        f"no {language} compiler found ({wanted or ', '.join(names)})",
        f"install one (apt-get install {names[0]}), or name one in {variable}",
    )


def _hook_command(target: HookTarget) -> list[str]:
    compiler = _compiler("CXX", "C++", ("g++", "c++", "clang++"))
    sources = map(str, sorted(SOURCES.glob("*.cpp")))
    return [compiler, *_flags(target), *sources, *_libraries()]


def boundary_command() -> list[str]:
    """Return the command that compiles the boundary library, without its output."""
    return [
        _compiler("CC", "C", ("gcc", "cc", "clang")),
        *("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"),
        # Bound completely at once, and never unloaded: others hold addresses in it.
        *("-pthread", "-Wl,-z,now,-z,nodelete,-z,defs"),
        *portable_flags(),
        "-DNFE_DEFINES_DLSYM",
        *map(str, sorted(BOUNDARY_SOURCES.glob("*.c"))),
        "-ldl",
    ]


def portable_flags() -> list[str]:
    """Return the flags that make the result load where glibc is older than here, down to 2.28."""
    return ["-include", str(PORTABLE / "glibc_floor.h"), "-isystem", str(PORTABLE)]


def _compile(command: Sequence[str], path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".build-") as scratch:
        output = Path(scratch) / path.name
        try:
            done = subprocess.run(  # nosec B603 # noqa: S603 - the compiler that the user chose
                [*command, "-o", str(output)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMPILE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BuildError(
                f"{command[0]} took more than {_COMPILE_SECONDS} s", "try again on an idle machine"
            ) from error
        if done.returncode != 0:
            raise BuildError(
                f"{command[0]} failed with status {done.returncode} ({_first_error(done.stderr)})",
                "name newer compilers in CXX (PyTorch's headers want g++ 11 or newer) and CC",
            )
        output.replace(path)


def _flags(target: HookTarget) -> list[str]:
    from torch.utils.cpp_extension import include_paths

    # The headers of PyTorch 2.13 need C++20; older ones are compiled as their PyTorch was.
    standard = "c++20" if target.version >= (2, 13) else "c++17"
    includes = [flag for folder in include_paths() for flag in ("-isystem", folder)]
    return [
        f"-std={standard}",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(target.cxx11_abi)}",
        *portable_flags(),
        *includes,
    ]


def _libraries() -> list[str]:
    from torch.utils.cpp_extension import library_paths

    return [*(f"-L{folder}" for folder in library_paths()), "-lc10", "-ltorch_cpu"]


def _first_error(text: str) -> str:
    lines = text.splitlines()
    return next((line for line in lines if "error" in line), lines[-1] if lines else "no message")
