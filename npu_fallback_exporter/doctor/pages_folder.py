"""The folder that server and exporter share: whether a page can be put there and read there."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..carried.reader import CarriedReader
from ..config import ServerSettings
from ..pages import layout
from ..pages.arm_failure import SUFFIX as FAILURE_SUFFIX
from ..pages.arm_failure import ArmFailures
from ..pages.discovery import SkippedFile, default_folder, scan
from ..pages.file_system import file_system_of, is_remote
from .finding import Finding, ok, problem, warning
from .machine import Machine

_ELSEWHERE = "set NPU_FALLBACK_DIR to a folder on a tmpfs, such as one under /dev/shm"
_MEMORY = {"tmpfs", "ramfs"}
_MOST_PAGES = 1024  # a server makes no page beside so many


def check(machine: Machine) -> tuple[Finding, ...]:
    """Judge each folder."""
    own = ServerSettings.from_environ(machine.environ).directory
    default = default_folder(os.geteuid())
    folders = machine.pages or (own or default,)
    found: list[Finding] = []
    for folder in folders:
        found += _folder(folder, is_default=folder == default and own is None)
    return tuple(found)


def _folder(folder: Path, *, is_default: bool) -> list[Finding]:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return _to_be_made(folder)
    except OSError as error:
        return [problem("folder", f"{folder} cannot be used ({error.strerror})", _ELSEWHERE)]
    if not is_default and stat.S_ISLNK(status.st_mode):
        try:
            status = folder.stat()
        except OSError as error:
            return [problem("folder", f"{folder} is a broken link ({error.strerror})", _ELSEWHERE)]
    if not stat.S_ISDIR(status.st_mode):
        return [problem("folder", f"{folder} is not a folder", f"remove it, or {_ELSEWHERE}")]
    permissions = _permissions(folder, status, is_default=is_default)
    if not os.access(folder, os.R_OK | os.X_OK):
        return [ok("folder", str(folder)), permissions]
    return [
        ok("folder", str(folder)),
        permissions,
        *_storage(folder),
        *_contents(folder),
    ]


def _to_be_made(folder: Path) -> list[Finding]:
    parent = folder.parent
    if not parent.is_dir():
        return [
            problem(
                "folder", f"{folder} is not there, nor is {parent}", f"make it, or {_ELSEWHERE}"
            )
        ]
    if not os.access(parent, os.W_OK | os.X_OK):
        return [
            problem(
                "folder",
                f"{folder} is not there, and this user cannot make it in {parent}",
                f"make it for the server's user, or {_ELSEWHERE}",
            )
        ]
    return [ok("folder", f"{folder}, which the first armed server makes"), *_storage(parent)]


def _permissions(folder: Path, status: os.stat_result, *, is_default: bool) -> Finding:
    mode = f"{stat.S_IMODE(status.st_mode):04o}, owner {status.st_uid}"
    others_write = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if is_default and (others_write or status.st_uid != os.geteuid()):
        return problem(
            "permissions",
            f"{mode}: not a folder of this user alone, so no server uses it",
            f"remove it, or {_ELSEWHERE}",
        )
    missing = [
        word
        for word, flag in (("read", os.R_OK), ("write", os.W_OK), ("enter", os.X_OK))
        if not os.access(folder, flag)
    ]
    if missing:
        return problem(
            "permissions",
            f"{mode}: this user may not {' or '.join(missing)}",
            "run doctor as the server's user, or share a group: NPU_FALLBACK_GROUP",
        )
    if status.st_mode & stat.S_IWOTH:
        return warning(
            "permissions",
            f"{mode}: everybody may write any numbers there",
            f"chmod o-w {folder}",
        )
    return ok("permissions", mode)


def _storage(folder: Path) -> list[Finding]:
    """Judge the file system of a folder and the room on it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = file_system_of(descriptor)
        status = os.fstatvfs(descriptor)
    finally:
        os.close(descriptor)
    return [_file_system(name), _room(status)]


def _file_system(name: str) -> Finding:
    if is_remote(name):
        return problem("file system", f"{name}, which may be shared between machines", _ELSEWHERE)
    if name in _MEMORY:
        return ok("file system", name)
    return warning(
        "file system", f"{name or 'unknown'}: pages are written back to a disk", _ELSEWHERE
    )


def _room(status: os.statvfs_result) -> Finding:
    free = status.f_bavail * status.f_frsize
    pages = free // layout.PAGE_BYTES
    text = f"{free / 2**20:.0f} MiB free, room for {pages} pages of {layout.PAGE_BYTES} bytes"
    if status.f_flag & os.ST_RDONLY:
        return problem("room", "mounted read-only", _ELSEWHERE)
    if pages < 1:
        return problem("room", text, "free space there (each server process needs one page)")
    if pages < 16:
        return warning("room", text, "each server process needs one page: give it more room")
    return ok("room", text)


def _contents(folder: Path) -> list[Finding]:
    """Judge the pages, what is no page, and the arm failures."""
    seen = scan([folder], ArmFailures())
    now = Counter(failure.reason for one in seen.folders for failure in one.failures)
    changes, unusable = CarriedReader().read(seen.folders)
    before = Counter[str]()
    for change in changes:
        for key, row in change.now.tally.rows.items():
            if key[0] == "failure":
                before[key[1]] += row[0]
    return [
        _pages(len(seen.pages)),
        *_unreadable([*seen.skipped, *unusable]),
        _arm_failures(folder, now, before),
    ]


def _pages(number: int) -> Finding:
    if number >= _MOST_PAGES:
        return problem(
            "pages",
            f"{number}: a server makes no more",
            "run an exporter that may write there: it retires the pages of ended processes",
        )
    return ok("pages", str(number) if number else "none: no armed server runs")


def _unreadable(skipped: Sequence[SkippedFile]) -> list[Finding]:
    if not skipped:
        return []
    first = skipped[0]
    more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
    text = f"{first.path}: {first.error.what}{more}"
    return [warning("unreadable files", text, first.error.next_step)]


def _arm_failures(folder: Path, now: Counter[str], before: Counter[str]) -> Finding:
    if now:
        return problem(
            "arm failures",
            f"{now.total()} recorded by servers ({_reasons(now)})",
            f"the server's log says why; mend it, then rm {folder}/*{FAILURE_SUFFIX}",
        )
    if before:
        return warning(
            "arm failures",
            f"{before.total()} since the totals began ({_reasons(before)})",
            "see whether npu_fallback_arm_failures_total still rises; the server's log says why",
        )
    return ok("arm failures", "none recorded")


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
