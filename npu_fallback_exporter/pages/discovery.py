"""Which folders hold pages, and what is in them now."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import PageError
from .arm_failure import ArmFailures
from .page import Reading, read_page

SUFFIX = ".page"
_FOLDER = re.compile(r"npu-fallback-([0-9]+)")
_SHARED_MEMORY = Path("/dev/shm")  # nosec B108 # noqa: S108 - its folders are checked for their owner
_MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True)
class FoundPage:
    """A page that could be read."""

    path: str
    reading: Reading


@dataclass(frozen=True)
class SkippedFile:
    """A file, or a folder, that could not be read.

    Attributes:
        inode: tells it from a later file of the same name; 0: not known.
    """

    path: str
    inode: int
    error: PageError


@dataclass(frozen=True)
class Scan:
    """What the folders held, in ascending order of the paths."""

    pages: tuple[FoundPage, ...]
    skipped: tuple[SkippedFile, ...]


def default_folder(uid: int, mounts: Path = _MOUNTS) -> Path:
    """Folder in which a process of user `uid` puts its page, unless it is told another."""
    base = _SHARED_MEMORY if _is_tmpfs(_SHARED_MEMORY, mounts) else Path(tempfile.gettempdir())
    return base / f"npu-fallback-{uid}"


def readable_default_folders(bases: Iterable[Path] | None = None) -> tuple[Path, ...]:
    """Every default folder, of any user, that this process may read; in a fixed order.

    Anybody can make a folder in a shared place. So one counts only if it is a folder, not a link
    to one, of the user whose number it bears, and nobody else may write to it.
    """
    places = bases or dict.fromkeys((_SHARED_MEMORY, Path(tempfile.gettempdir())))
    return tuple(folder for base in places for folder in sorted(_default_folders_in(base)))


def scan(folders: Iterable[Path], failures: ArmFailures) -> Scan:
    """Read every page in the folders, and count their arm failures.

    A folder that is not there yet is empty. A file that cannot be read costs only itself.
    """
    pages: list[FoundPage] = []
    skipped: list[SkippedFile] = []
    for folder in folders:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            skipped.append(SkippedFile(str(folder), 0, _closed_folder(folder, error)))
            continue
        try:
            with os.scandir(descriptor) as entries:
                names = sorted(entry.name for entry in entries)
            failures.scan(str(folder), names, descriptor)
            for name in names:
                if name.endswith(SUFFIX):
                    _read(folder, name, descriptor, pages, skipped)
        finally:
            os.close(descriptor)
    return Scan(tuple(pages), tuple(skipped))


def _read(
    folder: Path,
    name: str,
    folder_fd: int,
    pages: list[FoundPage],
    skipped: list[SkippedFile],
) -> None:
    path = f"{folder}/{name}"
    try:
        pages.append(FoundPage(path, read_page(name, folder_fd)))
    except PageError as error:
        inode = 0
        with contextlib.suppress(OSError):
            inode = os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_ino
        skipped.append(SkippedFile(path, inode, error))


def _closed_folder(folder: Path, error: OSError) -> PageError:
    return PageError(
        "permission" if isinstance(error, PermissionError) else "io",
        f"cannot read pages folder {folder} ({error.strerror})",
        "run the exporter with the uid of the server, or name another folder with --pages",
    )


def _default_folders_in(base: Path) -> Iterator[Path]:
    try:
        folders = list(base.iterdir())
    except OSError:
        return
    for folder in folders:
        match = _FOLDER.fullmatch(folder.name)
        if match and _belongs_to(folder, int(match[1])) and os.access(folder, os.R_OK | os.X_OK):
            yield folder


def _belongs_to(folder: Path, uid: int) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not others_write


def _is_tmpfs(path: Path, mounts: Path) -> bool:
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    # The last mount on a path is the one that is seen.
    kinds = [
        fields[2] for line in lines if len(fields := line.split()) > 2 and fields[1] == str(path)
    ]
    return bool(kinds) and kinds[-1] == "tmpfs"
