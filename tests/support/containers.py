"""Images built and containers run for real, with buildah and podman, without any registry.

The base image is a Debian root that debootstrap makes once: Debian 12 with its own Python, which is
older than that of the official image. Needs root, and network to the packages of Debian and Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BASE = "localhost/base:bookworm"
_TOOLS = ("buildah", "podman", "runc", "catatonit", "debootstrap")
_BASE_PACKAGES = "python3,python3-venv,ca-certificates"
_BASE_PYTHON = "3.11"
_BUILD_SECONDS, _RUN_SECONDS = 3600, 300

#: Containers inside a container may not raise limits.
_SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


def needs_containers() -> pytest.MarkDecorator:
    """Skips where a tool is missing, or the user is not root."""
    missing = [name for name in _TOOLS if shutil.which(name) is None]
    reason = f"apt-get install {' '.join(missing)}" if missing else "needs root"
    return pytest.mark.skipif(bool(missing) or os.geteuid() != 0, reason=reason)


class Containers:
    """Images and containers of one test run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "containers.conf"
        settings.write_text(_SETTINGS, encoding="utf-8")
        self._environment = {**os.environ, "CONTAINERS_CONF": str(settings)}
        self._storage = (
            *("--root", str(folder / "root"), "--runroot", str(folder / "run")),
            *("--storage-driver", "vfs"),
        )

    def podman(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run podman; never raises for its exit status."""
        return subprocess.run(
            ["podman", *self._storage, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            check=False,
        )

    def done(self, *arguments: str) -> str:
        """Run podman, which must succeed; gives what it printed."""
        finished = self.podman(*arguments)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        """What podman knows of an image or a container."""
        found: list[dict[str, Any]] = json.loads(self.done(kind, "inspect", name))
        return found[0]

    def import_base(self) -> None:
        """Take the Debian root, made by debootstrap if it is not there yet, as the base image."""
        if self.podman("image", "exists", BASE).returncode != 0:
            self.done("import", str(_base_archive()), BASE)

    def build(self, target: str) -> str:
        """Build one stage of the Dockerfile from this checkout; gives the image's name."""
        image = f"localhost/npu-fallback-{target}:test"
        command = [
            *("buildah", *self._storage, "bud", "--isolation", "chroot", "--pull-never"),
            *("--layers", "--format", "docker", "--target", target, "--tag", image),
            *("--build-arg", f"PYTHON_IMAGE={BASE}", "--build-arg", "TORCH_VERSIONS=2.13.0"),
            *("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"),
            *self._local_torch(),
            str(ROOT),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return image

    def end(self, *, keep_images: bool = False) -> None:
        """End all containers and remove what there is."""
        self.podman("pod", "rm", "--force", "--all", "--time", "0")
        self.podman("rm", "--force", "--all", "--time", "0")
        if not keep_images:
            self.podman("system", "prune", "--all", "--force")

    def _local_torch(self) -> tuple[str, ...]:
        """Use the CPU build of PyTorch that this machine's pip finds, if it finds one."""
        wheels = self._folder / "wheels"
        if not wheels.is_dir():
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary=:all:", f"--python-version={_BASE_PYTHON}"]
            subprocess.run(
                [*command, f"--dest={wheels}", "torch==2.13.0"], capture_output=True, check=False
            )
            wheels.mkdir(exist_ok=True)
        if not list(wheels.glob("torch-*+cpu-*.whl")):
            return ()
        return (
            *("--volume", f"{wheels}:/wheels:ro", "--build-arg", "PIP_FIND_LINKS=/wheels"),
            *("--build-arg", "PIP_EXTRA_INDEX_URL="),
        )


def _base_archive() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    archive = cache / "npu-fallback-exporter" / "images" / "bookworm.tar"
    if not archive.is_file():
        root = archive.with_suffix(".root")
        shutil.rmtree(root, ignore_errors=True)
        archive.parent.mkdir(parents=True, exist_ok=True)
        include = f"--include={_BASE_PACKAGES}"
        command = ["debootstrap", "--variant=minbase", include, "bookworm", str(root)]
        subprocess.run(command, capture_output=True, timeout=_BUILD_SECONDS, check=True)
        unfinished = archive.with_suffix(".tmp")
        subprocess.run(["tar", "-C", str(root), "-cf", str(unfinished), "."], check=True)
        unfinished.rename(archive)
        shutil.rmtree(root)
    return archive
