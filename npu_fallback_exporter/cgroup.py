"""The CPU limit of the control group that this process runs in, and how much of it is used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CgroupCpu:
    """CPU time used by a control group so far, and the CPUs it may use at a time."""

    used_seconds: float
    limit_cpus: float


def read_cgroup_cpu(
    proc: Path = Path("/proc"), mount: Path = Path("/sys/fs/cgroup")
) -> CgroupCpu | None:
    """Read the control group of this process, version 2 or 1.

    Args:
        proc: where procfs is mounted.
        mount: where the control groups are mounted.

    Returns:
        None where no CPU limit is set (a host, or a container without one), or
        where the files cannot be read.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
        if (mount / "cgroup.controllers").exists():
            return _version_2(mount, _path_of(lines, ""))
        return _version_1(mount, _path_of(lines, "cpuacct"))
    except (OSError, ValueError, IndexError):
        return None


def _path_of(lines: list[str], controller: str) -> str:
    """Return the path of a controller: ``4:cpu,cpuacct:/docker/1f`` or ``0::/user.slice``."""
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.strip("/")
    return ""


def _folders(mount: Path, path: str) -> list[Path]:
    """Return the group's folder and those above it.

    Inside a container the path may be the host's while the mount shows the
    container's own group as its root.
    """
    parts = [] if ".." in path.split("/") else [part for part in path.split("/") if part]
    folders = [mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]
    return [folder for folder in folders if folder.is_dir()]


def _version_2(mount: Path, path: str) -> CgroupCpu | None:
    folders = _folders(mount, path)
    limits = []
    for folder in folders:
        file = folder / "cpu.max"
        if file.exists():
            quota, period = file.read_text(encoding="utf-8").split()[:2]
            if quota != "max":
                limits.append(int(quota) / int(period))
    if not limits or min(limits) <= 0:
        return None
    stat = (folders[0] / "cpu.stat").read_text(encoding="utf-8").split()
    used_us = int(stat[stat.index("usage_usec") + 1])
    return CgroupCpu(used_us / 1e6, min(limits))


def _version_1(mount: Path, path: str) -> CgroupCpu | None:
    for name in ("cpu,cpuacct", "cpuacct,cpu", "cpu"):
        if (mount / name).is_dir():
            break
    else:
        return None
    folders = _folders(mount / name, path)
    limits = []
    for folder in folders:
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8"))
        if quota > 0 and period > 0:
            limits.append(quota / period)
    if not limits:
        return None
    used_ns = int((folders[0] / "cpuacct.usage").read_text(encoding="utf-8"))
    return CgroupCpu(used_ns / 1e9, min(limits))
