"""Compiles the simulated CANN libraries, once per version of their sources.

The result lies outside the tree, under a name made of everything that went into it, so any
number of processes may ask for it at once and a change never meets a stale library.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

_SOURCES = Path(__file__).parent
_WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter"]
_COMMON = ["-fPIC", "-fvisibility=hidden", "-pthread", *_WARNINGS]

#: Libraries that torch_npu names as dependencies. They are empty: a lookup in one of them
#: also searches what it depends on, which is libascendcl.so.
EMPTY_LIBRARIES = (
    "hccl",
    "ge_runner",
    "graph",
    "acl_op_compiler",
    "acl_tdt_channel",
)


class SimulationBuildError(Exception):
    """A compiler call failed; the text carries its output."""


def build() -> Path:
    """Return the folder with the libraries, compiling them first if need be."""
    cache = _cache_folder()
    compiler = _Compiler()
    finished = cache / "lib" / compiler.fingerprint(_all_sources())
    if finished.is_dir():
        return finished
    cache.mkdir(parents=True, exist_ok=True)
    with _exclusive(cache / "build.lock"):
        if not finished.is_dir():
            _build_into(finished, compiler, cache / "objects")
    return finished


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "npu-fallback-exporter" / "cann_sim"


def _all_sources() -> list[Path]:
    return sorted([*_SOURCES.glob("*/*.cpp"), *_SOURCES.glob("*/*.h"), _SOURCES / "build.py"])


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_into(finished: Path, compiler: _Compiler, objects: Path) -> None:
    finished.parent.mkdir(parents=True, exist_ok=True)
    objects.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="building-", dir=finished.parent))
    try:
        _compile_and_link(work, compiler, objects)
        work.chmod(0o755)
        work.rename(finished)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _compile_and_link(work: Path, compiler: _Compiler, objects: Path) -> None:
    runtime = sorted((_SOURCES / "runtime").glob("*.cpp"))
    operators = sorted((_SOURCES / "opapi").glob("*.cpp"))
    jobs = min(2, os.cpu_count() or 1)
    with ThreadPoolExecutor(jobs) as pool:
        runtime_objects = list(pool.map(partial(compiler.runtime_object, objects), runtime))
        compiler.link(work, "ascendcl", runtime_objects, [])
        for name in EMPTY_LIBRARIES:
            compiler.link(work, name, [], ["-Wl,--no-as-needed", "-lascendcl"])
        if operators:
            compiler.precompile_header(objects)
            operator_objects = list(pool.map(partial(compiler.operator_object, objects), operators))
            torch_libraries = [f"-L{compiler.torch / 'lib'}", "-ltorch_cpu", "-lc10"]
            compiler.link(
                work,
                "opapi",
                operator_objects,
                ["-Wl,--no-as-needed", "-lascendcl", *torch_libraries, "-ldl"],
            )


class _Compiler:
    """The C++ compiler and the torch it compiles for."""

    def __init__(self) -> None:
        self._command = os.environ.get("CXX", "c++")
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            raise SimulationBuildError("torch is not installed: the operators are computed with it")
        self.torch = Path(spec.origin).parent
        include = self.torch / "include"
        api = include / "torch" / "csrc" / "api" / "include"
        self._torch_flags = ["-std=c++20", "-O1", f"-isystem{include}", f"-isystem{api}"]
        # A torch release is built against one libstdc++ ABI; its config header does not tell.
        self._torch_flags.append("-D_GLIBCXX_USE_CXX11_ABI=1")
        version = self._run("--version").splitlines()[0]
        self._identity = f"{version} torch {importlib.metadata.version('torch')} {self.torch}"

    def fingerprint(self, sources: Sequence[Path], *flags: str) -> str:
        digest = hashlib.sha256(self._identity.encode())
        for flag in flags:
            digest.update(flag.encode())
        for source in sources:
            digest.update(source.name.encode())
            digest.update(source.read_bytes())
        return digest.hexdigest()[:24]

    def runtime_object(self, objects: Path, source: Path) -> Path:
        return self._object(objects, source, ["-std=c++17", "-O2"], [])

    def operator_object(self, objects: Path, source: Path) -> Path:
        header = self.precompile_header(objects)
        return self._object(objects, source, self._torch_flags, ["-include", str(header)])

    def precompile_header(self, objects: Path) -> Path:
        """Torch's headers take longer to read than the operators take to compile."""
        source = _SOURCES / "opapi" / "torch_headers.h"
        flags = [*_COMMON, *self._torch_flags]
        folder = objects / f"headers-{self.fingerprint([source], *flags)}"
        if not folder.is_dir():
            for stale in objects.glob("headers-*"):  # hundreds of megabytes each
                shutil.rmtree(stale, ignore_errors=True)
            work = Path(tempfile.mkdtemp(dir=objects))
            shutil.copy(source, work)
            name = work / source.name
            self._run("-x", "c++-header", str(name), "-o", f"{name}.gch", *flags)
            work.rename(folder)
        return folder / source.name

    def _object(
        self, objects: Path, source: Path, flags: Sequence[str], prefix: Sequence[str]
    ) -> Path:
        headers = sorted(source.parent.glob("*.h"))
        target = objects / f"{source.stem}-{self.fingerprint([source, *headers], *flags)}.o"
        if not target.exists():
            with tempfile.NamedTemporaryFile(dir=objects, suffix=".o", delete=False) as file:
                unfinished = Path(file.name)
            self._run(*prefix, "-c", str(source), "-o", str(unfinished), *_COMMON, *flags)
            unfinished.rename(target)
        return target

    def link(self, work: Path, name: str, objects: Sequence[Path], libraries: list[str]) -> None:
        self._run(
            "-shared",
            "-o",
            str(work / f"lib{name}.so"),
            f"-Wl,-soname,lib{name}.so",
            "-Wl,-rpath,$ORIGIN",
            *map(str, objects),
            f"-L{work}",
            *libraries,
            "-pthread",
        )

    def _run(self, *arguments: str) -> str:
        command = [self._command, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SimulationBuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout
