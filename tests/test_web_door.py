"""Which connections are kept when there are too many."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

from npu_fallback_exporter.web.connection import Connection
from npu_fallback_exporter.web.door import Door
from npu_fallback_exporter.web.watched_config import InForce
from npu_fallback_exporter.web.web_config import WebConfig

from .support.asgi import run
from .support.web import is_dropped

KEPT = 4
BAD, GOOD = "127.0.0.2", "127.0.0.3"


@dataclass
class _Opened:
    """A door with its clients; ``inside`` are the connections that it let in, by local port."""

    listener: socket.socket
    stack: ExitStack
    inside: dict[int, Connection] = field(default_factory=dict)

    def connect(self, source: str, count: int = 1) -> list[socket.socket]:
        address = self.listener.getsockname()
        return [
            self.stack.enter_context(socket.create_connection(address, 30, (source, 0)))
            for _ in range(count)
        ]

    async def let_in(self, client: socket.socket) -> Connection:
        while client.getsockname()[1] not in self.inside:
            await asyncio.sleep(0)
        return self.inside[client.getsockname()[1]]

    def speak_http(self, connection: Connection) -> asyncio.Protocol:
        return _Noting(self, connection)


class _Noting(asyncio.Protocol):
    """Stands in for HTTP: notes that the connection is open, and says nothing."""

    def __init__(self, opened: _Opened, connection: Connection) -> None:
        self._opened, self._connection = opened, connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._opened.inside[transport.get_extra_info("peername")[1]] = self._connection


@asynccontextmanager
async def opened(
    waiting: str = "", count: int = 0
) -> AsyncIterator[tuple[_Opened, list[socket.socket]]]:
    """Open a door to clients of which some wait already, until the block ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener, ExitStack() as stack:
        made = _Opened(listener, stack)
        clients = made.connect(waiting, count)
        door = Door(listener, made.speak_http, lambda: InForce(WebConfig(), None), KEPT)
        accepting = asyncio.create_task(door.accept())
        yield made, clients
        accepting.cancel()
        with suppress(asyncio.CancelledError):
            await accepting
        door.end()


async def dropped(client: socket.socket) -> bool:
    return await asyncio.to_thread(is_dropped, client)


def is_untouched(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        client.recv(1)
    except BlockingIOError:
        return True
    return False


def test_of_a_burst_the_last_ones_are_kept_and_the_first_are_closed() -> None:
    async def burst() -> None:
        async with opened(BAD, 3 * KEPT) as (door, clients):
            for client in clients[-KEPT:]:
                await door.let_in(client)
            for client in clients[:-KEPT]:
                assert await dropped(client)
            assert all(connection.is_open for connection in door.inside.values())

    run(burst())


def test_the_client_with_most_connections_loses_one_though_another_is_idle_for_longer() -> None:
    async def crowd() -> None:
        async with opened() as (door, _):
            (good,) = door.connect(GOOD)
            await door.let_in(good)
            bad = door.connect(BAD, KEPT)
            await door.let_in(bad[-1])
            assert await dropped(bad[0])
            assert is_untouched(good)

    run(crowd())


def test_a_request_under_way_is_dropped_only_when_there_is_nothing_else() -> None:
    async def busy() -> None:
        async with opened() as (door, _):
            (first,) = door.connect(BAD)
            with (await door.let_in(first)).answering():
                others = door.connect(BAD, KEPT)
                await door.let_in(others[-1])
                assert await dropped(others[0])
                assert is_untouched(first)

    run(busy())


def test_a_client_that_has_left_is_not_let_in() -> None:
    async def leave() -> None:
        async with opened() as (door, _):
            for client in door.connect(BAD, 3):
                client.close()
            (here,) = door.connect(GOOD)
            await door.let_in(here)
            assert set(door.inside) == {here.getsockname()[1]}

    run(leave())
