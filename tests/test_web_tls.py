"""TLS, client certificates and passwords over real sockets."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from .support.web import Certificates, Served, hash_of, served

PAIR = "cert_file: cert.pem, key_file: key.pem"
VERIFIED = f"{PAIR}, client_ca_file: ca.pem, client_auth_type: RequireAndVerifyClientCert"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path)


def write(certificates: Certificates, tls: str, rest: str = "") -> Path:
    path = certificates.folder / "web.yml"
    path.write_text(f"tls_server_config: {{{tls}}}\n{rest}")
    return path


@pytest.fixture
def secured(certificates: Certificates) -> Iterator[Served]:
    """Return a server with TLS and one user."""
    users = f"basic_auth_users: {{prometheus: {hash_of('right')}}}\n"
    headers = (
        "http_server_config: {headers: {X-Frame-Options: deny, X-Content-Type-Options: nosniff}}"
    )
    with served(write(certificates, PAIR, users + headers)) as server:
        yield server


def test_a_scrape_is_encrypted(certificates: Certificates) -> None:
    with served(write(certificates, PAIR)) as server:
        reply = server.get(tls=certificates.client_context())
    assert (reply.status, "good_total" in reply.body) == (200, True)


def test_a_client_that_trusts_another_authority_gets_nothing(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Certificates.make(tmp_path_factory.mktemp("other"))
    with served(write(certificates, PAIR)) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            server.get(tls=other.client_context())
        assert server.get(tls=certificates.client_context()).status == 200


def test_an_older_tls_is_refused(certificates: Certificates) -> None:
    context = certificates.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with served(write(certificates, f"{PAIR}, min_version: TLS13")) as server:
        with pytest.raises(ssl.SSLError):
            server.get(tls=context)
        assert server.get(tls=certificates.client_context()).status == 200


def test_a_certificate_is_asked_for_and_verified(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Certificates.make(tmp_path_factory.mktemp("other")).authority.issue_cert("a")
    foreign = certificates.client_context()
    stranger.configure_cert(foreign)
    with served(write(certificates, VERIFIED)) as server:
        assert server.get(tls=certificates.client_context("a.example")).status == 200
        for context in (certificates.client_context(), foreign):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                server.get(tls=context)


def test_a_certificate_may_be_given_where_none_is_demanded(certificates: Certificates) -> None:
    optional = VERIFIED.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven")
    with served(write(certificates, optional)) as server:
        assert server.get(tls=certificates.client_context()).status == 200
        assert server.get(tls=certificates.client_context("a.example")).status == 200


@pytest.mark.parametrize("name", ["a.example", "a@example.org", "::1", "10.0.0.1"])
def test_only_a_certificate_with_an_allowed_name_gets_in(
    certificates: Certificates, name: str
) -> None:
    with served(write(certificates, f"{VERIFIED}, client_allowed_sans: ['{name}']")) as server:
        assert server.get(tls=certificates.client_context(name)).status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.get(tls=certificates.client_context("b.example"))


def test_http_on_the_port_of_https_gets_no_answer(certificates: Certificates) -> None:
    with served(write(certificates, PAIR)) as server:
        with pytest.raises(ConnectionError):
            server.get()
        assert server.get(tls=certificates.client_context()).status == 200


def test_a_renewed_certificate_is_shown_to_the_next_client_without_a_restart(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with served(write(certificates, PAIR)) as server:
        old = certificates.client_context()
        assert server.get(tls=old).status == 200
        renewed = Certificates.make(certificates.folder)
        server.watched.refresh()
        assert server.get(tls=renewed.client_context()).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            server.get(tls=old)


def test_a_password_is_demanded_and_compared(secured: Served, certificates: Certificates) -> None:
    tls = certificates.client_context()
    for user in (None, ("prometheus", "wrong"), ("nobody", "right")):
        reply = secured.get(tls=tls, user=user)
        assert (reply.status, reply.body) == (401, "unauthorized\n")
        assert reply.headers["www-authenticate"].startswith("Basic realm=")
    assert secured.get(tls=tls, user=("prometheus", "right")).status == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/report", "/nothing", "/healthz/x"])
def test_no_other_path_answers_without_a_password(
    secured: Served, certificates: Certificates, path: str
) -> None:
    assert secured.get(path, tls=certificates.client_context()).status == 401


def test_probes_need_no_password(secured: Served, certificates: Certificates) -> None:
    tls = certificates.client_context()
    assert secured.get("/healthz", tls=tls).status == 200
    assert secured.get("/readyz", tls=tls).body in {
        "ready\n",
        "not ready: see the log of the exporter\n",
    }


def test_configured_headers_are_on_every_answer_once(
    secured: Served, certificates: Certificates
) -> None:
    for path in ("/healthz", "/metrics"):
        headers = secured.get(path, tls=certificates.client_context()).headers
        assert headers["x-frame-options"] == "deny"
        assert headers["x-content-type-options"] == "nosniff"


def test_a_changed_password_is_demanded_without_a_restart(
    secured: Served, certificates: Certificates
) -> None:
    tls = certificates.client_context()
    assert secured.get(tls=tls, user=("prometheus", "right")).status == 200
    write(certificates, PAIR, f"basic_auth_users: {{prometheus: {hash_of('new')}}}")
    secured.watched.refresh()
    assert secured.get(tls=tls, user=("prometheus", "right")).status == 401
    assert secured.get(tls=tls, user=("prometheus", "new")).status == 200
