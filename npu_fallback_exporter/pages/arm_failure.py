"""Small files by which a server process tells that its hook could not be armed.

They need no hook binary, so that a missing one is counted too.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .small_file import read_small_file

SUFFIX = ".armfail"
OTHER = "other"

# Values of the label `reason`; what is not here is counted as OTHER.
REASONS = ("build", "hook", "mode", "no_fallback", "page", "torch", "torch_npu", OTHER)

# A server that fails and restarts for days must not fill the tmpfs.
MAX_FILES = 1000
_MAX_BYTES = 4096


def record(folder: Path, reason: str, group: int | None = None) -> None:
    """Leave word of one arm failure. Never raises: it is the last thing that can be tried.

    Args:
        folder: the pages folder; made, for this user alone, if it is not there.
        reason: one of REASONS.
        group: id of the group that may read the file; None: only this user may.
    """
    try:
        _make(folder, group)
        if sum(1 for _ in folder.glob(f"*{SUFFIX}")) >= MAX_FILES:
            return
        stem = f"{os.getpid()}-{secrets.token_hex(16)}"
        text = json.dumps({"reason": reason, "unix_ns": time.time_ns(), "pid": os.getpid()})
        unfinished = folder / f"{stem}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if group is not None:
                os.fchown(descriptor, -1, group)
                os.fchmod(descriptor, 0o640)
            file.write(text)
        unfinished.rename(folder / f"{stem}{SUFFIX}")
    except Exception:  # nosec B110 # noqa: S110 - the caller has already logged what went wrong
        pass


class ArmFailure(NamedTuple):
    """One file.

    Attributes:
        name: of the file.
        digest: 32 hex digits that tell it from every other.
        reason: one of REASONS.
    """

    name: str
    digest: str
    reason: str


class ArmFailures:
    """The files of all folders. Each is read once: names are random and never used again."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, ArmFailure]] = {}

    def of_folder(
        self, folder: str, names: Iterable[str], folder_fd: int
    ) -> tuple[ArmFailure, ...]:
        """Return those of one folder.

        Args:
            folder: what tells it from others.
            names: its entries.
            folder_fd: its descriptor.
        """
        known = self._known.get(folder, {})
        self._known[folder] = {
            name: known.get(name) or ArmFailure(name, _digest(name), _read_reason(name, folder_fd))
            for name in names
            if name.endswith(SUFFIX)
        }
        return tuple(self._known[folder].values())


def _make(folder: Path, group: int | None) -> None:
    """Make the folder as the native page writer does, if it is not there."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    if group is not None:
        os.chown(folder, -1, group)
        folder.chmod(0o2750)


def _digest(name: str) -> str:
    return hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()


def _read_reason(name: str, folder_fd: int) -> str:
    """Reason in a file; OTHER when it cannot be read: that arming failed is known all the same."""
    try:
        content = json.loads(read_small_file(name, folder_fd, _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return OTHER
    reason = content.get("reason") if isinstance(content, dict) else None
    return reason if reason in REASONS else OTHER
