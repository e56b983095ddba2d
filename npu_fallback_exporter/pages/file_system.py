"""What kind of file system a folder is on."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")

# Locks and memory maps there do not reach across machines: counters would be silently wrong.
_REMOTE = {
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse",
    "fuseblk",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
    "vboxsf",
    "virtiofs",
}


def file_system_of(descriptor: int, mounts: Path = _MOUNTS) -> str:
    """Return the name of the file system that an open file is on, such as ``tmpfs``.

    Empty where it cannot be told.
    """
    try:
        return _name_of(os.fstat(descriptor).st_dev, mounts)
    except OSError:
        return ""


def is_remote(file_system: str) -> bool:
    """Whether a file system of that name may be shared between machines."""
    return file_system.split(".")[0] in _REMOTE


@lru_cache(maxsize=64)
def _name_of(device: int, mounts: Path) -> str:
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        mount, _, source = line.partition(" - ")
        fields = mount.split()
        if len(fields) > 2 and fields[2] == number and source:
            return source.split()[0]
    return ""
