"""The exporter's server on loopback, with real certificates, and clients good and bad."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bcrypt
import trustme
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily

from npu_fallback_exporter.collectors.composite import CompositeCollector
from npu_fallback_exporter.web.app import ExporterApp
from npu_fallback_exporter.web.listen_address import ListenAddress
from npu_fallback_exporter.web.server import ExporterServer, listen
from npu_fallback_exporter.web.watched_config import WatchedConfig

DEADLINE_SECONDS = 30.0
#: The least cost there is: tests need no slow hashes.
_COST = 4


def hash_of(password: str, cost: int = _COST) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


@dataclass(frozen=True)
class Certificates:
    """An authority, and what it has issued, as files in one folder."""

    folder: Path
    authority: trustme.CA

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        made = cls(folder, trustme.CA())
        made.authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        made.issue_for_server()
        return made

    def issue_for_server(self) -> None:
        """Write cert.pem and key.pem anew."""
        issued = self.authority.issue_cert("localhost", "127.0.0.1", "::1")
        issued.private_key_pem.write_to_path(str(self.folder / "key.pem"))
        (self.folder / "cert.pem").write_bytes(issued.cert_chain_pems[0].bytes())

    def client_context(self, *names: str) -> ssl.SSLContext:
        """Settings of a client that trusts the authority, with a certificate of these names."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if names:
            self.authority.issue_cert(*names).configure_cert(context)
        return context


class BigCollector:
    """One family of `series` series."""

    name = "fallback"

    def __init__(self, series: int = 1) -> None:
        self._series = series

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily("good_total", "Says that a scrape is whole.", labels=["n"])
        for number in range(self._series):
            family.add_metric([f"{number:08}"], 1)
        return [family]


@dataclass(frozen=True)
class Served:
    """A running server of this process."""

    port: int
    server: ExporterServer
    watched: WatchedConfig

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(
            ("127.0.0.1", self.port), DEADLINE_SECONDS, source_address=(source, 0)
        )

    def get(self, path: str = "/metrics", **how: Any) -> Reply:
        return get(self.port, path, **how)


@contextmanager
def served(config: Path | None = None, collector: BigCollector | None = None) -> Iterator[Served]:
    """Serve in a thread until the block ends. The files are read again on ``refresh()`` only."""
    collectors = CompositeCollector([collector or BigCollector()])
    watched = WatchedConfig(config)
    app = ExporterApp(collectors, ("fallback",), lambda: watched.current.config)
    with serving_app(app, watched) as running:
        yield running


@contextmanager
def serving_app(app: ExporterApp, watched: WatchedConfig) -> Iterator[Served]:
    """Serve any application in a thread until the block ends."""
    with listen(ListenAddress("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = ExporterServer(app, listener, watched)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield Served(port, server, watched)
        finally:
            server.should_exit = True
            thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()


@dataclass(frozen=True)
class Reply:
    """What came back; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: str
    seconds: float


def get(
    port: int,
    path: str = "/metrics",
    *,
    tls: ssl.SSLContext | None = None,
    user: tuple[str, str] | None = None,
    headers: dict[str, str] | None = None,
    source: str = "127.0.0.1",
    timeout: float = DEADLINE_SECONDS,
) -> Reply:
    """Ask once, on a connection of its own."""
    started = time.monotonic()
    with socket.create_connection(
        ("127.0.0.1", port), timeout, source_address=(source, 0)
    ) as plain:
        wire = plain if tls is None else tls.wrap_socket(plain, server_hostname="localhost")
        connection = http.client.HTTPConnection("localhost")
        connection.sock = wire
        try:
            more = {} if user is None else authorization(*user)
            connection.request("GET", path, headers={**more, **(headers or {})})
            response = connection.getresponse()
            body = response.read().decode()
        finally:
            wire.close()
    got: dict[str, str] = {}
    for name, value in response.getheaders():
        before = got.get(name.lower())
        got[name.lower()] = value if before is None else f"{before}, {value}"
    return Reply(response.status, got, body, time.monotonic() - started)


def authorization(name: str, password: str) -> dict[str, str]:
    token = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}


def is_dropped(connection: socket.socket) -> bool:
    """Wait until the server drops the connection; False if it does not within the deadline."""
    connection.settimeout(DEADLINE_SECONDS)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True
