"""Taking connections in: each with the TLS settings of the moment, and never too many."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Callable

from .connection import REQUEST_SECONDS, Connection
from .watched_config import InForce

_log = logging.getLogger(__name__)

# Until the next try, when the process has no file descriptor left.
_PAUSE_SECONDS = 0.05
# Accepted in one turn of the loop.
_BURST = 16


class Door:
    """Accepts connections of one listening socket.

    When there are too many, one is dropped: of the client that holds most of them, and of those
    the one that has done nothing for longest; one whose request is under way only if there is no
    other. So a client that opens connections without end drops its own.

    Args:
        listener: the socket.
        speak_http: makes the protocol that speaks HTTP on a connection.
        in_force: the web configuration of the moment.
        most: how many connections are kept.
    """

    def __init__(
        self,
        listener: socket.socket,
        speak_http: Callable[[Connection], asyncio.Protocol],
        in_force: Callable[[], InForce],
        most: int,
    ) -> None:
        self._listener = listener
        self._speak_http = speak_http
        self._in_force = in_force
        self._most = most
        self._connections: set[Connection] = set()

    async def accept(self) -> None:
        """Accept until cancelled."""
        self._listener.setblocking(False)
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            try:
                accepted, address = await loop.sock_accept(self._listener)
            except OSError as error:
                _log.debug("cannot accept: %s", error)
                self._drop_one()
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if _has_left(accepted):
                accepted.close()
            else:
                self._admit(accepted, str(address[0]))
            # A connection that waits already is accepted without a turn of the loop.
            if number % _BURST == 0:
                await asyncio.sleep(0)

    def end(self) -> None:
        """Drop every connection that is still open."""
        for connection in list(self._connections):
            connection.end()

    def _admit(self, accepted: socket.socket, client: str) -> None:
        if len(self._connections) >= self._most:
            self._drop_one()
        in_force = self._in_force()
        connection = Connection(
            client, self._speak_http, lambda opened: _admits(in_force, opened), self._forget
        )
        task = asyncio.create_task(self._open(accepted, connection, in_force.context))
        task.add_done_callback(lambda _: self._clear(connection, accepted))
        self._connections.add(connection)
        connection.open_with(task)

    async def _open(
        self, accepted: socket.socket, connection: Connection, context: ssl.SSLContext | None
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=context, **_handshake_bounds(context)
            )
        except Exception as error:
            # Whatever a client does to its connection is its own loss.
            _log.debug("no connection with %s: %s", connection.client, error)

    def _clear(self, connection: Connection, accepted: socket.socket) -> None:
        """Leave nothing of a connection that did not open, even if its task never ran."""
        if not connection.is_open:
            accepted.close()
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def _drop_one(self) -> None:
        held = Counter(connection.client for connection in self._connections)
        dropped = max(
            self._connections,
            key=lambda c: (not c.is_answering, held[c.client], -c.last_active),
            default=None,
        )
        if dropped is not None:
            self._forget(dropped)
            dropped.end()


def _has_left(accepted: socket.socket) -> bool:
    """Whether the client has closed already; whoever does so without end must not cost much."""
    try:
        return not accepted.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _admits(in_force: InForce, opened: asyncio.BaseTransport) -> bool:
    tls = in_force.config.tls
    return tls is None or tls.admits(opened.get_extra_info("peercert"))


def _handshake_bounds(context: ssl.SSLContext | None) -> dict[str, float]:
    if context is None:
        return {}
    bounds = {"ssl_handshake_timeout": REQUEST_SECONDS}
    if sys.version_info >= (3, 11):
        bounds["ssl_shutdown_timeout"] = REQUEST_SECONDS
    return bounds
