"""Small files by which a server process tells that its hook could not be armed.

They need no hook binary, so that a missing one is counted too.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections import Counter
from pathlib import Path

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
        folder.mkdir(mode=0o700, exist_ok=True)
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


class ArmFailures:
    """Counts the files of all folders, each once, for the lifetime of the exporter."""

    def __init__(self) -> None:
        self._totals: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        self._seen: dict[str, frozenset[str]] = {}

    def scan(self, folder: str, names: list[str], folder_fd: int) -> None:
        """Count the files of one folder that were not there before.

        Args:
            folder: what tells this folder from others.
            names: its entries.
            folder_fd: its descriptor.
        """
        present = frozenset(name for name in names if name.endswith(SUFFIX))
        for name in present - self._seen.get(folder, frozenset()):
            self._totals[_read_reason(name, folder_fd)] += 1
        self._seen[folder] = present  # names are random, so one that is gone never returns

    @property
    def totals(self) -> dict[str, int]:
        """Failures by reason; every one of REASONS is there."""
        return dict(self._totals)


def _read_reason(name: str, folder_fd: int) -> str:
    """Reason in a file; OTHER when it cannot be read: that arming failed is known all the same."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, dir_fd=folder_fd)
        try:
            content = json.loads(os.pread(descriptor, _MAX_BYTES, 0))
        finally:
            os.close(descriptor)
    except (OSError, ValueError, RecursionError):
        return OTHER
    reason = content.get("reason") if isinstance(content, dict) else None
    return reason if reason in REASONS else OTHER
