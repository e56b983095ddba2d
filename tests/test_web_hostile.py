"""Clients that mean harm, or are merely broken: a good scrape is answered all the same."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu_fallback_exporter.web import connection as connection_module
from npu_fallback_exporter.web import server as server_module

from .support.exporter_process import wait_until
from .support.web import BigCollector, Certificates, Served, hash_of, is_dropped, served

ATTACKER = "127.0.0.2"
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def server() -> Iterator[Served]:
    """Return a server without TLS."""
    with served() as running:
        yield running


@pytest.fixture
def tls_folder(tmp_path: Path) -> Certificates:
    """Return certificates with a configuration that uses them, and one user."""
    made = Certificates.make(tmp_path)
    (tmp_path / "web.yml").write_text(
        "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
        f"basic_auth_users: {{prometheus: {hash_of('right')}}}\n"
    )
    return made


def assert_scraped(server: Served, certificates: Certificates | None = None) -> None:
    if certificates is None:
        reply = server.get()
    else:
        tls = certificates.client_context()
        reply = server.get(tls=tls, user=("prometheus", "right"))
    assert (reply.status, "good_total" in reply.body) == (200, True)


def assert_probed(connection: socket.socket) -> None:
    """Ask on an open connection, and read all of the answer."""
    connection.sendall(PROBE)
    answer = b""
    while not answer.endswith(b"\r\n\r\nok\n"):
        received = connection.recv(4096)
        assert received
        answer += received


@pytest.mark.parametrize("source", ["127.0.0.1", ATTACKER])
def test_200_silent_connections_keep_no_scrape_out(server: Served, source: str) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(server.connect(source))
        assert_scraped(server)


def test_200_silent_connections_keep_no_encrypted_scrape_out(tls_folder: Certificates) -> None:
    with served(tls_folder.folder / "web.yml") as server, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(server.connect(ATTACKER))
        assert_scraped(server, tls_folder)


def test_a_client_that_opens_too_many_connections_loses_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "_MAX_CONNECTIONS", 4)
    with served() as server, server.connect() as good, ExitStack() as stack:
        assert_probed(good)
        bad = [stack.enter_context(server.connect(ATTACKER)) for _ in range(8)]
        assert all(is_dropped(connection) for connection in bad[:5])
        assert_probed(good)


def test_a_header_that_never_ends_is_dropped_in_time(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.3)
    stop = threading.Event()
    with server.connect(ATTACKER) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")

        def trickle() -> None:
            while not stop.wait(0.05):
                try:
                    slow.sendall(b"A: b\r\n")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            assert is_dropped(slow)
        finally:
            stop.set()
            thread.join()
    assert_scraped(server)


def test_a_second_request_has_no_more_time_than_the_first(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect(ATTACKER) as slow:
        assert_probed(slow)
        monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.1)
        slow.sendall(b"GET")
        assert is_dropped(slow)


@pytest.mark.parametrize("hello", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_a_handshake_that_never_ends_is_dropped_in_time(
    tls_folder: Certificates, monkeypatch: pytest.MonkeyPatch, hello: bytes
) -> None:
    monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.1)
    with (
        served(tls_folder.folder / "web.yml") as server,
        server.connect(ATTACKER) as slow,
    ):
        slow.sendall(hello)
        assert is_dropped(slow)


def test_an_answer_that_nobody_reads_is_dropped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "ANSWER_SECONDS", 0.5)
    with served(collector=BigCollector(100_000)) as server, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(REQUEST)
        wait_until(lambda: len(server.server.server_state.connections) == 1)
        wait_until(lambda: not server.server.server_state.connections)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: ",
        b"GET /",
        b"",
    ],
)
def test_a_request_without_end_is_refused(server: Served, head: bytes) -> None:
    with server.connect(ATTACKER) as endless:
        endless.sendall(head)
        with pytest.raises(ConnectionError):
            endless.sendall(bytes(640 << 20))
    assert_scraped(server)


def test_a_header_of_32_kib_is_refused_with_400(server: Served) -> None:
    with server.connect(ATTACKER) as big:
        big.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 32768)
        assert big.recv(4096).startswith(b"HTTP/1.1 400")


def test_a_body_that_goes_wrong_after_the_answer_is_dropped_without_a_word(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    with server.connect(ATTACKER) as client:
        client.sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 404")
        client.sendall(b"no chunk\r\n")
        assert is_dropped(client)
    assert not caplog.records


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/metrics/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/metrics%00",
        "/metrics/",
        "http://169.254.169.254/latest/meta-data",
        "*",
    ],
)
def test_a_path_is_a_name_and_no_file(server: Served, target: str) -> None:
    with server.connect(ATTACKER) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"root:" not in answer


def test_a_query_changes_nothing(server: Served) -> None:
    assert server.get("/metrics?name[]=x&file=../../etc/passwd").status == 200


def test_a_flood_of_wrong_passwords_delays_no_known_one(tls_folder: Certificates) -> None:
    config = tls_folder.folder / "web.yml"
    config.write_text(config.read_text().replace(hash_of("right"), hash_of("right", 4)))
    tls = tls_folder.client_context()
    with served(config) as server:
        assert_scraped(server, tls_folder)
        stop = threading.Event()

        def guess() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                reply = server.get(tls=tls, user=("prometheus", str(number)), source=ATTACKER)
                assert reply.status in {401, 429}

        threads = [threading.Thread(target=guess) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                assert_scraped(server, tls_folder)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


_LINES = st.sampled_from(
    [
        *(b"GET /metrics HTTP/1.1\r\n", b"GET / HTTP/1.0\r\n", b"HEAD /healthz HTTP/1.1\r\n"),
        *(b"POST /metrics HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"Host: x\r\n"),
        *(b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n"),
        *(b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"Connection: close\r\n"),
        *(
            b"Expect: 100-continue\r\n",
            b"Authorization: Basic !\r\n",
            b"\r\n",
            b"\n",
            b"5\r\nhello",
        ),
        *(b"0\r\n\r\n", b"\x16\x03\x01\x00\xff\x01", b"Accept: ;;q=,\xff\r\n", b"\0"),
    ]
)
_PIECES = st.lists(st.one_of(_LINES, st.binary(max_size=40)), max_size=12)


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Served]:
    """Return one server for all examples."""
    with served() as running:
        yield running


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pieces=_PIECES)
def test_no_bytes_upset_it(
    fuzzed: Served, caplog: pytest.LogCaptureFixture, pieces: list[bytes]
) -> None:
    caplog.set_level(logging.ERROR)
    with fuzzed.connect(ATTACKER) as client:
        with contextlib.suppress(OSError):  # it may be dropped at any piece
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
        assert is_dropped(client)
    assert fuzzed.get("/healthz").status == 200
    assert not caplog.records


def test_a_tls_port_takes_any_bytes(tls_folder: Certificates) -> None:
    with served(tls_folder.folder / "web.yml") as server:
        for bad in (
            *(b"\x00" * 512, REQUEST, b"\x16\x03\x01\xff\xff" + b"A" * 4096),
            *(b"\x15\x03\x03\x00\x02\x02\x28", b"\x80\x2e\x01\x00\x02", b"SSH-2.0-x\r\n"),
        ):
            with server.connect(ATTACKER) as client:
                client.sendall(bad)
                with contextlib.suppress(OSError):  # it has been dropped already
                    client.shutdown(socket.SHUT_WR)
                assert is_dropped(client)
        assert_scraped(server, tls_folder)


def test_when_accepting_fails_it_drops_a_connection_and_goes_on(
    server: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = asyncio.SelectorEventLoop.sock_accept
    failures = [OSError(errno.EMFILE, "Too many open files")]

    async def failing(loop: asyncio.SelectorEventLoop, listener: socket.socket) -> object:
        if failures:
            raise failures.pop()
        return await accept(loop, listener)

    with server.connect(ATTACKER) as first:
        assert_scraped(server)
        monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_accept", failing)
        assert_scraped(server)  # accepted before; the next call fails
        assert is_dropped(first)
    assert_scraped(server)
    assert not failures
    assert not caplog.records
