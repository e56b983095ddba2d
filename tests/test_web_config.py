"""What a web configuration may say, and what is refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from npu_fallback_exporter.errors import ConfigError
from npu_fallback_exporter.web.tls import TlsSettings
from npu_fallback_exporter.web.web_config import WebConfig, parse

from .support.web import Certificates, hash_of

FOLDER = Path("/etc/exporter")
PAIR = "cert_file: c.pem, key_file: k.pem"
HASH = "$2y$10$" + "a" * 53


def read(text: str) -> WebConfig:
    return parse(text.encode(), FOLDER)


def tls(settings: str) -> TlsSettings:
    found = read(f"tls_server_config: {{{PAIR}, {settings}}}").tls
    assert found is not None
    return found


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "tls_server_config:\n", "---\n"])
def test_an_empty_file_configures_nothing(text: str) -> None:
    assert read(text) == WebConfig()


def test_paths_are_relative_to_the_folder_of_the_file() -> None:
    found = tls("client_ca_file: /abs/ca.pem, client_auth_type: RequireAndVerifyClientCert")
    assert found.cert.path == FOLDER / "c.pem"
    assert found.key.path == FOLDER / "k.pem"
    assert found.client_ca is not None
    assert found.client_ca.path == Path("/abs/ca.pem")


def test_tls_12_is_the_least_unless_the_file_says_otherwise() -> None:
    assert tls("").min_version is ssl.TLSVersion.TLSv1_2
    assert tls("min_version: TLS13").min_version is ssl.TLSVersion.TLSv1_3
    assert tls("max_version: TLS12").max_version is ssl.TLSVersion.TLSv1_2


def test_cipher_suites_have_the_names_that_go_gives_them() -> None:
    found = tls("cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]")
    assert found.suites == ("ECDHE-RSA-AES128-GCM-SHA256",)


def test_suites_of_tls_13_alone_leave_tls_13_alone() -> None:
    assert tls("cipher_suites: [TLS_AES_128_GCM_SHA256]").min_version is ssl.TLSVersion.TLSv1_3


def test_every_choice_that_is_accepted_can_be_loaded(tmp_path: Path) -> None:
    Certificates.make(tmp_path)
    for curve in ("CurveP256", "CurveP384", "CurveP521", "X25519"):
        text = (
            f"tls_server_config: {{cert_file: cert.pem, key_file: key.pem, max_version: TLS12,"
            f" cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384], min_version: TLS12,"
            f" curve_preferences: [{curve}], prefer_server_cipher_suites: false}}"
        )
        settings = parse(text.encode(), tmp_path).tls
        assert settings is not None
        context = settings.context(Path.read_bytes)
        assert [c["name"] for c in context.get_ciphers() if "ECDHE" in c["name"]] == [
            "ECDHE-ECDSA-AES256-GCM-SHA384"
        ]
        assert not context.options & ssl.OP_CIPHER_SERVER_PREFERENCE


def test_headers_are_added_in_lower_case() -> None:
    found = read(
        "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"
        "    Strict-Transport-Security: max-age=31536000\n    X-XSS-Protection:\n"
    )
    assert dict(found.headers) == {
        b"x-frame-options": b"deny",
        b"strict-transport-security": b"max-age=31536000",
    }


def test_a_user_may_have_a_name_that_looks_like_a_number_or_a_switch() -> None:
    users = read(f"basic_auth_users:\n  123: {HASH}\n  on: {hash_of('x')}\n").users
    assert set(users) == {b"123", b"on"}


@pytest.mark.parametrize(
    ("auth", "known"),
    [
        ("", False),
        ("client_ca_file: a, client_auth_type: VerifyClientCertIfGiven", False),
        ("client_ca_file: a, client_auth_type: RequireAndVerifyClientCert", True),
    ],
)
def test_clients_are_known_when_their_certificates_are_required(auth: str, known: bool) -> None:
    assert read(f"tls_server_config: {{{PAIR}, {auth}}}").authenticates is known


def test_clients_are_known_by_their_passwords() -> None:
    assert read(f"basic_auth_users: {{a: {HASH}}}").authenticates


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tls_config: {}", "tls_config is not known: use tls_server_config, http_server_config"),
        ("tls_server_config: {cert: a, kee: b}", "tls_server_config.kee is not known"),
        ("tls_server_config: {cert_file: c}", "has no key_file"),
        ("tls_server_config: {min_version: TLS12}", "has no cert_file"),
        ("tls_server_config: {cert_file: c, cert: x}", "cert and cert_file are both given"),
        ("tls_server_config: [a]", "tls_server_config is not a mapping"),
        ("- a", "its outermost value is not a mapping"),
        ("a: {", "line 1: "),
        ("a: 1\na: 2", "line 2: 'a' is there twice"),
        ("? [a]\n: b", "line 1: a key is no text"),
        ("\x00", "it is not YAML"),
        ("http_server_config: {http2: true}", "http2 is not offered: remove it"),
        ("http_server_config: {http2: 7}", "http_server_config.http2 is not true or false"),
        ("http_server_config: {headers: {Server: x}}", "headers.Server is not known"),
        ("http_server_config: {headers: {X-Frame-Options: x}}", "write deny or sameorigin"),
        ('http_server_config: {headers: {X-XSS-Protection: "1\\r\\nA: b"}}', "printable ASCII"),
        ("rate_limit: {interval: 1s, burst: 2}", "rate_limit is not offered"),
        ("basic_auth_users: {a: secret}", "the password of 'a' is not a bcrypt hash: make one"),
        ("basic_auth_users: {a: [x]}", "basic_auth_users.a is not a text"),
        (f"basic_auth_users: {{a: {HASH.replace('$10', '$31')}}}", "cost 31: use 4 to 16"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "has a colon"),
    ],
)
def test_what_it_may_not_say_is_one_line_with_the_next_step(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("client_auth_type: RequireAnyClientCert", "verifies nobody: use RequireAndVerify"),
        ("client_auth_type: RequestClientCert", "is not offered"),
        ("client_auth_type: Sometimes", "'Sometimes' is not known: use NoClientCert, Verify"),
        ("client_auth_type: RequireAndVerifyClientCert", "has no client_ca_file"),
        ("client_ca_file: ca.pem", "client_ca_file is given without client_auth_type"),
        ("client_allowed_sans: [a]", "client_allowed_sans needs verified clients"),
        ("client_allowed_sans: a", "client_allowed_sans is not a list of texts"),
        ("min_version: TLS10", "min_version: 'TLS10' is not offered: use TLS12 or TLS13"),
        ("max_version: SSL3", "max_version: 'SSL3' is not known"),
        ("min_version: TLS13, max_version: TLS12", "min_version is above max_version"),
        ("cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]", "cipher_suites: 'TLS_RSA_WITH_RC4_128_SHA'"),
        ("curve_preferences: [P1]", "curve_preferences: 'P1' is not known"),
        ("curve_preferences: [X25519, CurveP256]", "several curves are not offered"),
    ],
)
def test_tls_that_is_not_offered_is_refused(settings: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tls(settings)
    assert says in str(caught.value)


def test_no_message_has_a_secret() -> None:
    for text in (
        "basic_auth_users: {a: hunter2}",
        "basic_auth_users: {a: [hunter2]}",
        "basic_auth_users: {a: hunter2, a: hunter2}",
        "basic_auth_users: {a: hunter2: b}",
        "tls_server_config: {key: hunter2}",
        "tls_server_config: {key: [hunter2]}",
    ):
        with pytest.raises(ConfigError) as caught:
            read(text)
        assert "hunter2" not in str(caught.value)
