"""Reading a small file of a pages folder, which may be anything by now."""

from __future__ import annotations

import os
import stat


def read_small_file(name: str, folder_fd: int, most: int) -> bytes:
    """Return the contents of a regular file; never waits, and follows no link.

    Args:
        name: of the file in the folder.
        folder_fd: descriptor of the folder.
        most: bytes that it may have.

    Raises:
        OSError: there is no such file, it cannot be read, is not regular, or has more bytes.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder_fd)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{name} is not a regular file")
        data = os.pread(descriptor, most + 1, 0)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise OSError(f"{name} has more than {most} bytes")
    return data
