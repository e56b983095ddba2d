"""``serve`` as its own process, with a web configuration, among enemies, and among its like."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from .support.exporter_process import serving, wait_until
from .support.exposition import samples
from .support.page_factory import PageFactory
from .support.prometheus_process import answer, needs_prometheus, prometheus
from .support.web import Certificates, get, hash_of, is_dropped

QUIET = ("--no-npu-smi",)
USER = ("prometheus", "right")
SERVE = [sys.executable, "-m", "npu_fallback_exporter", "serve", *QUIET]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Return a folder with one page."""
    folder = tmp_path / "pages"
    folder.mkdir()
    PageFactory().events("aten::fmax.out", 7).write(folder)
    return folder


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Return certificates with a web configuration that demands all there is."""
    made = Certificates.make(tmp_path)
    (tmp_path / "web.yml").write_text(
        "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n  client_ca_file: ca.pem\n"
        "  client_auth_type: RequireAndVerifyClientCert\n  min_version: TLS12\n"
        f"basic_auth_users:\n  prometheus: {hash_of('right', 10)}\n"
    )
    return made


def secured(certificates: Certificates) -> tuple[str, ...]:
    return (*QUIET, "--web.config.file", str(certificates.folder / "web.yml"))


@needs_prometheus
@pytest.mark.timeout(120)
def test_prometheus_scrapes_with_a_certificate_and_a_password(
    certificates: Certificates, pages: Path, tmp_path: Path
) -> None:
    issued = certificates.authority.issue_cert("prometheus.example")
    issued.private_key_pem.write_to_path(str(tmp_path / "client.key"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "client.pem"))
    tls = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key"}
    basic = dict(zip(("username", "password"), USER, strict=True))
    how = {"scheme": "https", "tls_config": {**tls, "server_name": "localhost"}}
    with (
        serving(*secured(certificates), pages=pages) as exporter,
        prometheus(tmp_path, f"127.0.0.1:{exporter.port}", basic_auth=basic, **how) as address,
    ):
        wait_until(lambda: answer(address, "up") == {"": 1}, 60, "Prometheus cannot scrape it")
        events = answer(address, 'npu_fallback_events_total{op="aten::fmax.out"}')
    assert list(events.values()) == [7]


def test_a_changed_password_and_certificate_are_used_without_a_restart(
    certificates: Certificates, pages: Path
) -> None:
    with serving(*secured(certificates), pages=pages) as exporter:
        client = certificates.client_context("a.example")
        assert get(exporter.port, tls=client, user=USER).status == 200
        file = certificates.folder / "web.yml"
        file.write_text(file.read_text().partition("basic_auth_users")[0] + _user("new"))
        wait_until(lambda: get(exporter.port, tls=client, user=("new", "right")).status == 200)
        assert get(exporter.port, tls=client, user=USER).status == 401
        assert any("the new content is in force" in line for line in exporter.log)


def _user(name: str) -> str:
    return f"basic_auth_users:\n  {name}: {hash_of('right')}\n"


def test_a_bad_web_configuration_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "web.yml").write_text("tls_server: {}\n")
    done = subprocess.run(
        [*SERVE, "--web.config.file", str(tmp_path / "web.yml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"npu-fallback-exporter: {tmp_path}/web.yml: tls_server is not known: ")


def test_passwords_without_tls_are_warned_of(tmp_path: Path, pages: Path) -> None:
    (tmp_path / "web.yml").write_text(_user("a"))
    flags = (*QUIET, "--web.config.file", str(tmp_path / "web.yml"))
    with serving(*flags, "--web.listen-address", ":0", pages=pages) as exporter:
        wait_until(lambda: any("unencrypted" in line for line in exporter.log))


def test_it_says_nothing_about_what_enemies_send(certificates: Certificates, pages: Path) -> None:
    with serving(*secured(certificates), "--log.level", "info", pages=pages) as exporter:
        before = list(exporter.log)
        stranger = certificates.client_context()
        for bad in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"\0" * 9999):
            with socket.create_connection(("127.0.0.1", exporter.port)) as client:
                client.sendall(bad)
                client.shutdown(socket.SHUT_WR)
                assert is_dropped(client)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(exporter.port, tls=stranger, user=USER)
        known = certificates.client_context("a.example")
        assert get(exporter.port, tls=known, user=("prometheus", "wrong")).status == 401
        assert get(exporter.port, tls=known, user=USER).status == 200
    assert exporter.log == before


def test_it_answers_with_few_file_descriptors_and_many_silent_clients(pages: Path) -> None:
    few = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")
    with serving(*QUIET, pages=pages, before=few) as exporter, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(
                socket.create_connection(("127.0.0.1", exporter.port), 30, ("127.0.0.2", 0))
            )
        text, _ = exporter.scrape()
    assert list(samples(text, "npu_fallback_events_total").values()) == [7]


@pytest.mark.parametrize(
    ("address", "reached", "refused"),
    [
        ("127.0.0.1:0", ["127.0.0.1"], ["127.0.0.2", "::1"]),
        ("127.0.0.2:0", ["127.0.0.2"], ["127.0.0.1"]),
        ("[::1]:0", ["::1"], ["127.0.0.1"]),
        (":0", ["127.0.0.1", "127.0.0.2", "::1"], []),
        ("0.0.0.0:0", ["127.0.0.1", "127.0.0.2"], ["::1"]),
    ],
)
def test_it_listens_on_what_it_is_told_only(
    pages: Path, address: str, reached: list[str], refused: list[str]
) -> None:
    if ":" in "".join(reached) and not _has_ipv6():
        pytest.skip("no IPv6 here")
    with serving(*QUIET, "--web.listen-address", address, pages=pages) as exporter:
        for host in reached:
            connection = http.client.HTTPConnection(host, exporter.port, timeout=30)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b"ok\n"
            connection.close()
        for host in refused:
            with pytest.raises(OSError, match=r"refused|unreachable|Cannot assign"):
                socket.create_connection((host, exporter.port), 30)


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


# --- Case F109: several exporters told to use the same port ------------------------------------


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _total(port: int) -> float:
    reply = get(port)
    return sum(samples(reply.body, "npu_fallback_events_total").values())


@pytest.mark.timeout(180)
def test_of_8_exporters_with_one_port_none_dies_and_every_scrape_holds_all(tmp_path: Path) -> None:
    for _ in range(8):
        PageFactory().events("aten::fmax.out", 5).write(tmp_path)
    port = _free_port()
    flags = [*SERVE, "--web.listen-address", f"127.0.0.1:{port}", "--pages", str(tmp_path)]
    with ExitStack() as stack:
        running = [
            stack.enter_context(subprocess.Popen(flags, stderr=subprocess.PIPE, text=True))
            for _ in range(8)
        ]
        for process in running:
            stack.callback(process.kill)
        listening = []
        for process in running:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "listen" in line)
            if " listening on " in said:
                listening.append(process)
            else:
                assert f"another exporter listens on 127.0.0.1:{port}: standing by" in said
        assert len(listening) == 1
        assert _total(port) == 40
        assert all(process.poll() is None for process in running)

        listening[0].kill()
        listening[0].wait()
        wait_until(lambda: _is_scraped(port))
        assert _total(port) == 40
        assert [process.poll() for process in running if process is not listening[0]] == [None] * 7


def _is_scraped(port: int) -> bool:
    try:
        return get(port).status == 200
    except OSError:
        return False


def test_an_exporter_that_stands_by_ends_at_a_signal(tmp_path: Path) -> None:
    with serving(*QUIET, pages=tmp_path) as first:
        address = f"127.0.0.1:{first.port}"
        second = subprocess.Popen(
            [*SERVE, "--web.listen-address", address], stderr=subprocess.PIPE, text=True
        )
        with second:
            assert second.stderr is not None
            assert "standing by" in second.stderr.readline()
            second.terminate()
            assert second.wait(30) == 0


def test_a_port_that_something_else_has_is_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [*SERVE, "--web.listen-address", address, "--pages", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"cannot listen on {address} (Address already in use): " in done.stderr
    assert len(done.stderr.splitlines()) == 1
