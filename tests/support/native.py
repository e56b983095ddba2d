"""The driver of the torch-free native code, compiled once per set of flags."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

from npu_fallback_exporter.instrument.hook_path import SOURCES, cache_folder

_NATIVE = Path(__file__).parent.parent / "native"

#: Sources that need PyTorch's headers.
_TORCH_SIDE = {
    "argument_text.cpp",
    "copy_context.cpp",
    "dispatcher_hook.cpp",
    "event_bytes.cpp",
    "first_sight.cpp",
    "hook_api.cpp",
    "kernel_exchange.cpp",
    "listed_kernels.cpp",
    "op_stack.cpp",
    "refusal.cpp",
    "tracker.cpp",
}

#: Why each set of flags exists: as shipped; data races; memory and undefined behaviour.
FLAGS = {
    "plain": ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wno-invalid-offsetof", "-Werror"],
    "thread": ["-O1", "-g", "-fsanitize=thread"],
    "address": ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
}


def driver(flavour: str = "plain", name: str = "driver") -> Path:
    """Compile a driver with one set of :data:`FLAGS` if that was not done, return its path.

    Args:
        flavour: which flags.
        name: of its source in ``tests/native``, without the suffix. A name that starts with
            ``lib`` gives a shared library.
    """
    source = _NATIVE / f"{name}.cpp"
    sources = [source, *sorted(p for p in SOURCES.glob("*.cpp") if p.name not in _TORCH_SIDE)]
    flags = [*FLAGS[flavour], *(["-shared", "-fPIC"] if name.startswith("lib") else [])]
    digest = hashlib.sha256(repr(flags).encode())
    for path in [*sources, *sorted(SOURCES.glob("*.h"))]:
        digest.update(path.read_bytes())
    folder = cache_folder().parent / "native-tests"
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / f"{name}-{flavour}-{digest.hexdigest()[:16]}"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            unfinished = binary.with_suffix(".tmp")
            subprocess.run(
                [
                    *("g++", "-std=c++17", "-pthread", *flags, f"-I{SOURCES}"),
                    *(*map(str, sources), "-o", str(unfinished)),
                ],
                check=True,
            )
            unfinished.rename(binary)
    return binary


def run_driver(*arguments: str | Path, flavour: str = "plain", name: str = "driver") -> list[str]:
    """Run one command of a driver and return the lines it printed.

    Raises:
        subprocess.CalledProcessError: it failed, or a sanitizer found something (on stderr).
    """
    done = subprocess.run(
        [str(driver(flavour, name)), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1 die_after_fork=0"},
    )
    return done.stdout.splitlines()
