"""Seeing to it that the native hook is there before a server starts.

Compiling needs PyTorch in memory. It is done in a process of its own, so that the one that stays
beside the server for its whole life stays small.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from npu_fallback_exporter.errors import BuildError
from npu_fallback_exporter.instrument.hook_path import find_boundary, search_folders, source_hash


def hook_is_built(environ: Mapping[str, str]) -> bool:
    """Return whether there are a hook for the PyTorch of this Python and a boundary library.

    PyTorch is not imported.

    Raises:
        BuildError: PyTorch is not installed beside this package.
    """
    try:
        version = importlib.metadata.version("torch").split("+")[0]
    except importlib.metadata.PackageNotFoundError as error:
        raise BuildError(
            f"PyTorch is not installed for {sys.executable}, so no hook can be compiled here",
            "install this package into the environment of your server",
        ) from error
    pattern = f"hook-torch{version}-{platform.machine()}*-{source_hash()}.so"
    preferred = preferred_folder(environ)
    return find_boundary(preferred) is not None and any(
        next(folder.glob(pattern), None) is not None for folder in search_folders(preferred)
    )


def preferred_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of prebuilt hooks that the environment names."""
    path = environ.get("NPU_FALLBACK_HOOK_PATH")
    return Path(path) if path else None


def build_hook(environ: Mapping[str, str] = os.environ) -> None:
    """Compile the hook for the PyTorch of this Python.

    Raises:
        BuildError: it does not compile; the message is the compiling process's last line.
    """
    quiet = {**environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "NPU_FALLBACK_HOOK": "0"}
    quiet.pop("NPU_FALLBACK_MODE", None)
    done = subprocess.run(  # nosec B603
        [sys.executable, "-m", "npu_fallback_exporter", "build-hook"],
        env=quiet,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise BuildError(
            "the hook was not compiled (" + lines[-1].removeprefix("npu-fallback-exporter: ") + ")",
            "run: npu-fallback-exporter build-hook",
        )
