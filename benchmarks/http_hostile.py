"""Good scrapes while somebody attacks: each has to be answered, in under 200 ms.

Run: ``python -m benchmarks.http_hostile``. One real ``serve`` with TLS and a password reads
8 pages of 16 operators. While an attack goes on from another process, and from another loopback
address where the table says so, a client scrapes ten times a second, each time on a new
connection. Printed per attack: median, 95 % and maximum of the milliseconds from connecting to
the last byte, and the answers that were not 200.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import socket
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.exporter_process import serving
from tests.support.page_factory import PageFactory
from tests.support.web import Certificates, authorization, get, hash_of

SECONDS = 10.0
SCRAPES_PER_SECOND = 10
PAGES, OPS = 8, 16
CONNECTIONS = 200
OTHER, SAME = "127.0.0.2", "127.0.0.1"
USER = ("prometheus", "right")

Attack = Callable[[int, str], None]


def connect(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 5, (source, 0))


def encrypted(port: int, source: str) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connect(port, source))


def nothing(_port: int, _source: str) -> None:
    """Do nothing, for comparison."""
    time.sleep(3600)


def silent(port: int, source: str) -> None:
    """Keep 200 connections open without a word; replace those that are dropped."""
    hold(port, source, connect, b"")


def half_a_hello(port: int, source: str) -> None:
    """Keep 200 connections open in the middle of the TLS handshake."""
    hold(port, source, connect, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


def slow_headers(port: int, source: str) -> None:
    """Keep 200 encrypted connections open, and send a header line on each now and then."""
    hold(port, source, encrypted, b"GET /metrics HTTP/1.1\r\nA: b\r\n", b"A: b\r\n")


def unread_answers(port: int, source: str) -> None:
    """Ask for metrics on 200 encrypted connections, and read nothing."""
    request = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
    hold(port, source, encrypted, request.encode() + b"\r\n", request.encode() + b"\r\n")


def hold(
    port: int,
    source: str,
    open_one: Callable[[int, str], socket.socket],
    first: bytes,
    later: bytes = b"",
) -> None:
    held: list[socket.socket] = []
    while True:
        while len(held) < CONNECTIONS:
            with suppress(OSError):
                opened = open_one(port, source)
                held.append(opened)
                opened.sendall(first)
        time.sleep(0.5)
        held = [connection for connection in held if is_open(connection, later)]


def is_open(connection: socket.socket, later: bytes) -> bool:
    try:
        connection.sendall(later)
        connection.setblocking(False)
        return bool(connection.recv(1))
    except (BlockingIOError, ssl.SSLWantReadError):
        connection.settimeout(5)
        return True
    except OSError:
        connection.close()
        return False


def flood(port: int, source: str) -> None:
    """Open connections without end, and close them at once."""
    while True:
        with suppress(OSError):
            connect(port, source).close()


def bad_tls(port: int, source: str) -> None:
    """Send what is no TLS, without end."""
    while True:
        with suppress(OSError), connect(port, source) as connection:
            connection.sendall(b"\x16\x03\x01\xff\xff" + os.urandom(4096))
            connection.recv(64)


def big_headers(port: int, source: str) -> None:
    """Send headers of a megabyte, without end."""
    while True:
        with suppress(OSError), encrypted(port, source) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nA: " + b"x" * (1 << 20))


def wrong_passwords(port: int, source: str) -> None:
    """Guess a new password with every request, without end."""
    number = 0
    while True:
        with suppress(OSError), encrypted(port, source) as connection:
            for _ in range(100):
                number += 1
                name, value = next(iter(authorization("prometheus", str(number)).items()))
                connection.sendall(
                    f"GET /metrics HTTP/1.1\r\nHost: x\r\n{name}: {value}\r\n\r\n".encode()
                )
                connection.recv(4096)


ATTACKS: tuple[tuple[Attack, str], ...] = (
    (nothing, OTHER),
    (silent, OTHER),
    (silent, SAME),
    (half_a_hello, OTHER),
    (slow_headers, OTHER),
    (unread_answers, OTHER),
    (flood, OTHER),
    (flood, SAME),
    (bad_tls, OTHER),
    (big_headers, OTHER),
    (wrong_passwords, OTHER),
    (wrong_passwords, SAME),
)


@contextmanager
def attacking(attack: Attack, port: int, source: str) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(
        target=attack, args=(port, source), daemon=True
    )
    process.start()
    try:
        time.sleep(2)  # until it is at full strength
        yield
    finally:
        process.kill()
        process.join()


def scrapes(port: int, tls: ssl.SSLContext) -> tuple[list[float], int]:
    """Milliseconds of every good scrape, and how many were none."""
    taken: list[float] = []
    failed = 0
    for _ in range(int(SECONDS * SCRAPES_PER_SECOND)):
        started = time.monotonic()
        try:
            reply = get(port, tls=tls, user=USER, timeout=10)
            good = reply.status == 200 and "npu_fallback_events_total" in reply.body
        except OSError:
            good = False
        elapsed = time.monotonic() - started
        if good:
            taken.append(elapsed * 1e3)
        failed += not good
        time.sleep(max(0.0, 1 / SCRAPES_PER_SECOND - elapsed))
    return taken, failed


def write_pages(folder: Path) -> None:
    for number in range(PAGES):
        page = PageFactory()
        for op in range(OPS):
            page.events(f"aten::op{op}", number + op)
        page.write(folder)


def main() -> None:
    """Print the table."""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]}")
    print("| attack | from | median, ms | 95 %, ms | maximum, ms | failed |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificates = Certificates.make(folder)
        (folder / "web.yml").write_text(
            "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
            f"basic_auth_users: {{prometheus: {hash_of('right', 10)}}}\n"
        )
        (folder / "pages").mkdir()
        write_pages(folder / "pages")
        flags = ("--no-npu-smi", "--web.config.file", str(folder / "web.yml"))
        tls = certificates.client_context()
        with serving(*flags, pages=folder / "pages") as exporter:
            for attack, source in ATTACKS:
                with attacking(attack, exporter.port, source):
                    taken, failed = scrapes(exporter.port, tls)
                middle = statistics.median(taken)
                high = statistics.quantiles(taken, n=20)[-1]
                whence = "the same address" if source == SAME else "another address"
                print(
                    f"| {attack.__name__.replace('_', ' ')} | {whence} | {middle:.0f} | {high:.0f} "
                    f"| {max(taken):.0f} | {failed} of {len(taken) + failed} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
