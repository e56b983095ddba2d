"""One connection, bounded in time and size, whatever its client does or leaves undone."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

_log = logging.getLogger(__name__)

# From the first moment to a whole request: the TLS handshake and the header.
REQUEST_SECONDS = 10.0
# From the request to the last byte of its answer. Longer than a scrape may take.
ANSWER_SECONDS = 60.0
# Longer than common scrape intervals, so that a scrape finds its connection open.
IDLE_SECONDS = 75
# A request for metrics has no body; what is sent all the same may be this long with its header.
MAX_REQUEST_BYTES = 64 << 10


class _State(enum.Enum):
    READING = enum.auto()
    ANSWERING = enum.auto()
    SENDING = enum.auto()
    IDLE = enum.auto()
    CLOSED = enum.auto()


class Connection(asyncio.Protocol):
    """Stands between a transport and the protocol that speaks HTTP, and counts time and bytes.

    The application says when a request is there (:meth:`answering`); all else shows in what the
    transport calls.

    Args:
        client: address of the client.
        speak_http: makes the protocol that speaks HTTP.
        admits: asked once the connection is open, after any TLS handshake.
        on_lost: called once it was open and is no more.

    Attributes:
        client: as given.
        last_active: when it was accepted or last answered, by the clock of the loop.
    """

    def __init__(
        self,
        client: str,
        speak_http: Callable[[Connection], asyncio.Protocol],
        admits: Callable[[asyncio.BaseTransport], bool],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self.client = client
        self.last_active = 0.0
        self._speak_http = speak_http
        self._http: asyncio.Protocol | None = None
        self._admits = admits
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._received = 0
        self._write_paused = False
        self._state = _State.IDLE
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is, or was, a transport."""
        return self._transport is not None

    @property
    def is_answering(self) -> bool:
        """Whether a request is under way."""
        return self._state in {_State.ANSWERING, _State.SENDING}

    def open_with(self, opening: asyncio.Task[None]) -> None:
        """Begin: the task makes the transport, and is ended where that takes too long."""
        self._opening = opening
        self._enter(_State.READING, REQUEST_SECONDS)

    def end(self) -> None:
        """Drop the connection now."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._transport is not None:
            self._transport.abort()
        elif self._opening is not None:
            self._opening.cancel()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Around the work of the application on one request."""
        self._received = 0
        self._enter(_State.ANSWERING, ANSWER_SECONDS)
        try:
            yield
        finally:
            if self._write_paused and self.is_answering:
                self._state = _State.SENDING  # the deadline of the answer holds on
            else:
                self._rest()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass on, if the client may come in."""
        self._transport = cast(asyncio.Transport, transport)
        if self._admits(transport):
            self._http = self._speak_http(self)
            self._http.connection_made(transport)
        else:
            self.end()

    def data_received(self, data: bytes) -> None:
        """Pass on, within the bounds."""
        if self._state is _State.IDLE:
            self._enter(_State.READING, REQUEST_SECONDS)
        self._received += len(data)
        if self._received > MAX_REQUEST_BYTES or self._http is None:
            self.end()
            return
        try:
            self._http.data_received(data)
        except Exception as error:
            _log.debug("dropped a connection: %s", type(error).__name__)
            self.end()

    def eof_received(self) -> bool | None:
        """Pass on."""
        return None if self._http is None else self._http.eof_received()

    def pause_writing(self) -> None:
        """Pass on: the client reads slower than the answer is written."""
        self._write_paused = True
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        """Pass on."""
        self._write_paused = False
        if self._state is _State.SENDING:
            self._rest()
        if self._http is not None:
            self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on."""
        self._state = _State.CLOSED
        if self._deadline is not None:
            self._deadline.cancel()
        if self._http is not None:
            self._http.connection_lost(exc)
        self._on_lost(self)

    def _rest(self) -> None:
        # The server closes an idle connection in time; this is for one that does not get closed.
        self._enter(_State.IDLE, IDLE_SECONDS + REQUEST_SECONDS)

    def _enter(self, state: _State, seconds: float) -> None:
        if self._state is _State.CLOSED:
            return
        self._state = state
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(seconds, self.end)
        # What a client sends before a request is whole is no activity.
        if state is not _State.READING or self._transport is None:
            self.last_active = loop.time()
