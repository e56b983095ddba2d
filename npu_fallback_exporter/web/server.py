"""Listening, and serving until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import resource
import signal
import socket
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import NpuFallbackError
from .app import ExporterApp
from .connection import IDLE_SECONDS, Connection
from .door import Door
from .listen_address import ListenAddress
from .watched_config import WatchedConfig
from .web_config import WebConfig

# Connections that wait to be accepted; a burst of them must not keep a scrape out.
_BACKLOG = 1024
# Several Prometheus servers, probes and browsers; each may hold an unread answer in memory.
_MAX_CONNECTIONS = 128
# Less than the grace that container runtimes give after SIGTERM.
_SHUTDOWN_SECONDS = 3


def listen(address: ListenAddress) -> socket.socket:
    """Open the listening socket; port 0 takes any that is free.

    Raises:
        NpuFallbackError: it cannot be opened.
    """
    dual = not address.host and socket.has_dualstack_ipv6()
    try:
        family = socket.AF_INET6 if dual else _family_of(address)
        return socket.create_server(
            (address.host, address.port), family=family, dualstack_ipv6=dual, backlog=_BACKLOG
        )
    except OSError as error:
        what = f"cannot listen on {address} ({_reason(error)})"
        raise NpuFallbackError(what, _next_step(error)) from None


def _family_of(address: ListenAddress) -> int:
    if not address.host:
        return socket.AF_INET
    return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]


def url(listener: socket.socket, encrypted: bool = False) -> str:
    """Address of the metrics as a client on this host may use it."""
    host, port = listener.getsockname()[:2]
    return f"{'https' if encrypted else 'http'}://{ListenAddress(host, port)}/metrics"


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this host can connect."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def may_show_details(flag: bool | None, listener: socket.socket, config: WebConfig) -> bool:
    """Whether answers other than the metrics may name paths and call sites.

    Args:
        flag: what the user said; ``None``: nothing.
        listener: only this host can connect to one on loopback.
        config: may authenticate every client.
    """
    return (is_loopback(listener) or config.authenticates) if flag is None else flag


class ExporterServer(uvicorn.Server):
    """uvicorn behind a door of our own: docs/adr/0003 says why.

    Args:
        app: answers.
        listener: an open listening socket.
        watched: the web configuration.
    """

    def __init__(self, app: ExporterApp, listener: socket.socket, watched: WatchedConfig) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=H11Protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        self._door = Door(listener, self._speak_http, lambda: watched.current, _most_connections())
        self._accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then open the door."""
        await super().startup(sockets=sockets or [])
        self._accepting = asyncio.create_task(self._door.accept())

    async def on_tick(self, counter: int) -> bool:
        """Fail where nobody is let in any more; ask uvicorn whether to go on."""
        if self._accepting is not None and self._accepting.done():
            self._accepting.result()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the door, and let the answers under way finish."""
        if self._accepting is not None:
            self._accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._accepting
        await super().shutdown(sockets)
        self._door.end()

    def _speak_http(self, connection: Connection) -> asyncio.Protocol:
        return H11Protocol(
            config=self.config,
            server_state=self.server_state,
            app_state={**self.lifespan.state, "connection": connection},
        )


def _most_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if files < 0 else min(_MAX_CONNECTIONS, files // 2)


def end_on_signals() -> None:
    """End this process with status 0 at SIGTERM and SIGINT.

    As PID 1 a process without a handler would not see SIGTERM at all. While uvicorn serves it has
    handlers of its own, and raises the signal again for these when it has finished.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _reason(error: OSError) -> str:
    # create_server() appends the address to the text; the number has the plain words.
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)


def _next_step(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "end what listens there, or choose another port with --web.listen-address"
    if error.errno == errno.EACCES:
        return "choose a port above 1023 with --web.listen-address"
    return "name an address of this host with --web.listen-address"
