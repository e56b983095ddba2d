"""Opening a page that may be anything, and reading it without ever waiting or mapping it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from ..errors import PageError
from .decode import decode
from .model import Page
from .notes import Notes, decode_notes

# Every reason with which a file can be skipped: values of the label `reason`.
REASONS = (
    "corrupt",
    "empty",
    "io",
    "magic",
    "not_regular",
    "permission",
    "remote",
    "truncated",
    "vanished",
    "version",
)

_REMOVE = "remove it from the pages folder"
_REASON_OF_ERRNO = {
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.ENOENT: "vanished",
    errno.ESTALE: "vanished",
    errno.ELOOP: "not_regular",  # a symbolic link, refused by O_NOFOLLOW
    errno.ENXIO: "not_regular",  # a socket
    errno.ENODEV: "not_regular",
}
_NEXT_STEP = {
    "permission": "run the exporter with the uid of the server, or set NPU_FALLBACK_GROUP there",
    "vanished": "nothing, if its process has ended",
    "not_regular": _REMOVE,
}
_CHECK_STORAGE = "check the file system of the pages folder"

# From linux/fcntl.h; Python names them only since 3.9 and not in every build.
_F_OFD_GETLK = getattr(fcntl, "F_OFD_GETLK", 36)
# struct flock of 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("@hhqqi4x")


@dataclass(frozen=True)
class Reading:
    """A page, and whether its writer was alive just before it was read."""

    live: bool
    page: Page


def read_page(name: str, folder_fd: int | None = None) -> Reading:
    """Read one page.

    Args:
        name: path of the file, relative to the folder.
        folder_fd: descriptor of the folder; None: the working directory.

    Raises:
        PageError: the file is not a page that this version can read; `reason` is in REASONS.
    """
    with _opened(name, folder_fd) as (descriptor, size):
        # In this order what is read of a page that has ended is final.
        live = _is_locked_by_writer(descriptor)
        return Reading(live, decode(partial(_pread, descriptor), size))


def read_notes(name: str, folder_fd: int | None = None) -> Notes:
    """Read the notes of one page: call sites and arguments. Arguments and errors: read_page()."""
    with _opened(name, folder_fd) as (descriptor, size):
        return decode_notes(partial(_pread, descriptor), size)


@contextmanager
def _opened(name: str, folder_fd: int | None) -> Iterator[tuple[int, int]]:
    """Open what may be a page; gives its descriptor and size. Raises PageError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, dir_fd=folder_fd)
    except OSError as error:
        raise _refused(error) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PageError("not_regular", "page is not a regular file", _REMOVE)
        yield descriptor, status.st_size
    except OSError as error:
        raise _refused(error) from None
    finally:
        os.close(descriptor)


def _pread(descriptor: int, offset: int, size: int) -> bytes:
    data = os.pread(descriptor, size, offset)
    if len(data) < size:  # somebody cut the file since its size was taken
        raise PageError("truncated", f"page ends before byte {offset + size}", _REMOVE)
    return data


def _is_locked_by_writer(descriptor: int) -> bool:
    # Asking for a shared lock, so that only an exclusive one answers.
    question = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    try:
        answer = fcntl.fcntl(descriptor, _F_OFD_GETLK, question)
    except OSError as error:
        # Without locks nobody can tell whether the writer has ended.
        raise PageError(
            "io",
            f"cannot ask for the lock of the page ({error.strerror})",
            "name a folder on a tmpfs with --pages, and in NPU_FALLBACK_DIR of the servers",
        ) from None
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _refused(error: OSError) -> PageError:
    reason = _REASON_OF_ERRNO.get(error.errno or 0, "io")
    what = f"cannot read page ({error.strerror})"
    return PageError(reason, what, _NEXT_STEP.get(reason, _CHECK_STORAGE))
