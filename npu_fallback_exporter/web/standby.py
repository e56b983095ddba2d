"""Sharing a port with other exporters on this host: one listens, the others stand by.

All of them read the same folder unless they were told otherwise, so the one that listens shows the
servers of all; when it ends, another takes over.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Callable

from ..errors import NpuFallbackError

# A name that the kernel keeps per network namespace, as it keeps ports, and only for as long as
# the process lives.
_NAME = "\0npu-fallback-exporter:{port}"
_RETRY_SECONDS = 1.0


def mark(port: int) -> socket.socket:
    """Let others know that it is an exporter who listens on the port, until this is closed."""
    marker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    # An exporter that listens on another address with this port has marked it already.
    with contextlib.suppress(OSError):
        marker.bind(_NAME.format(port=port))
    return marker


def is_marked(port: int) -> bool:
    """Whether an exporter listens on the port."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_NAME.format(port=port))
        except OSError:
            return False
        return True


def listen_in_turn(
    listen: Callable[[], socket.socket],
    port: int,
    tell: Callable[[], object],
    sleep: Callable[[float], object] = time.sleep,
) -> socket.socket:
    """Listen; while another exporter has the port, wait until it ends.

    Args:
        listen: opens the socket.
        port: that it listens on.
        tell: called once before waiting.
        sleep: waits for so many seconds.

    Raises:
        NpuFallbackError: it cannot listen, and no exporter is the reason.
    """
    told = False
    while True:
        try:
            return listen()
        except NpuFallbackError as error:
            if not _is_port_taken(error):
                raise
            # Who has just opened the socket marks it a moment later.
            if not is_marked(port):
                sleep(_RETRY_SECONDS)
            if not is_marked(port):
                return listen()
        if not told:
            told = True
            tell()
        sleep(_RETRY_SECONDS)


def _is_port_taken(error: NpuFallbackError) -> bool:
    cause = error.__context__
    return isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE
