"""The web configuration is read again when its files change."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from npu_fallback_exporter.errors import ConfigError
from npu_fallback_exporter.web import watched_config
from npu_fallback_exporter.web.watched_config import WatchedConfig

from .support.exporter_process import wait_until
from .support.web import Certificates, hash_of

TLS = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"


@pytest.fixture
def file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
    """Return a good file with TLS and one user, beside its certificates."""
    caplog.set_level(logging.INFO)
    Certificates.make(tmp_path)
    path = tmp_path / "web.yml"
    path.write_text(f"{TLS}basic_auth_users: {{a: {hash_of('x')}}}\n")
    return path


def test_without_a_file_nothing_is_configured() -> None:
    with WatchedConfig(None) as watched:
        watched.refresh()
        assert (watched.current.context, watched.current.config.users) == (None, {})


def test_a_file_that_is_not_there_is_told_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"web\.yml: cannot read .*No such file.*: make it read"):
        WatchedConfig(tmp_path / "web.yml")


def test_a_certificate_that_is_not_there_is_told_at_start(file: Path) -> None:
    (file.parent / "key.pem").unlink()
    with pytest.raises(ConfigError, match=r"web\.yml: cannot read .*key\.pem \(No such file"):
        WatchedConfig(file)


@pytest.mark.parametrize("name", ["cert.pem", "key.pem"])
def test_a_certificate_that_is_none_is_told_at_start(file: Path, name: str) -> None:
    (file.parent / name).write_text("no PEM")
    with pytest.raises(ConfigError, match=r"no PEM, or the key is encrypted: check cert_file"):
        WatchedConfig(file)


def test_an_encrypted_key_is_refused_without_asking_for_a_passphrase(file: Path) -> None:
    key = file.parent / "key.pem"
    key.write_bytes(_encrypted(key.read_bytes()))
    with pytest.raises(ConfigError, match="the key is encrypted"):
        WatchedConfig(file)


def _encrypted(pem: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )


def test_an_authority_without_a_certificate_is_told_at_start(file: Path) -> None:
    (file.parent / "ca.pem").write_text("nothing")
    file.write_text(
        "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: ca.pem,"
        " client_auth_type: RequireAndVerifyClientCert}"
    )
    with pytest.raises(ConfigError, match="client_ca_file has no certificate"):
        WatchedConfig(file)


def test_certificates_may_stand_in_the_file_itself(file: Path) -> None:
    def inline(name: str) -> str:
        lines = (file.parent / name).read_text().splitlines()
        return "|\n" + "".join(f"    {line}\n" for line in lines)

    file.write_text(
        f"tls_server_config:\n  cert: {inline('cert.pem')}  key: {inline('key.pem')}"
        f"  client_ca: {inline('ca.pem')}  client_auth_type: RequireAndVerifyClientCert\n"
    )
    context = WatchedConfig(file).current.context
    assert context is not None
    assert len(context.get_ca_certs()) == 1


def test_a_file_that_did_not_change_is_not_loaded_again(file: Path) -> None:
    watched = WatchedConfig(file)
    before = watched.current
    watched.refresh()
    assert watched.current is before


def test_a_new_certificate_is_in_force_for_new_connections(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = WatchedConfig(file)
    before = watched.current
    Certificates.make(file.parent)
    watched.refresh()
    assert watched.current.context is not before.context
    assert caplog.messages == [f"{file}: the new content is in force"]


def test_a_link_to_another_folder_is_seen_as_kubernetes_exchanges_it(file: Path) -> None:
    for name in ("one", "two"):
        (file.parent / name).mkdir()
        (file.parent / name / "web.yml").write_text(f"basic_auth_users: {{{name}: {hash_of('x')}}}")
    link = file.parent / "data"
    link.symlink_to("one")
    watched = WatchedConfig(link / "web.yml")
    link.unlink()
    link.symlink_to("two")
    watched.refresh()
    assert set(watched.current.config.users) == {b"two"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("tls_server_config: {", "line 1"),
        ("unknown: 1", "unknown is not known"),
        ("", "TLS cannot be switched on or off while it runs: restart"),
        (TLS, "authentication cannot be switched off while it runs: restart"),
    ],
)
def test_a_bad_new_file_leaves_the_old_one_in_force_and_is_told_once(
    file: Path, caplog: pytest.LogCaptureFixture, content: str, says: str
) -> None:
    watched = WatchedConfig(file)
    before = watched.current
    file.write_text(content)
    watched.refresh()
    watched.refresh()
    assert watched.current is before
    (message,) = caplog.messages
    assert message.startswith(f"{file}: the new content is not used: ")
    assert says in message


def test_a_file_that_vanishes_leaves_the_old_one_in_force_and_is_told_once(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = WatchedConfig(file)
    before = watched.current
    file.unlink()
    watched.refresh()
    watched.refresh()
    assert watched.current is before
    assert len(caplog.messages) == 1


def test_a_key_that_comes_after_its_certificate_is_used_when_it_is_there(file: Path) -> None:
    watched = WatchedConfig(file)
    before = watched.current
    old_key = (file.parent / "key.pem").read_bytes()
    Certificates.make(file.parent)
    new_key = (file.parent / "key.pem").read_bytes()
    (file.parent / "key.pem").write_bytes(old_key)
    watched.refresh()
    assert watched.current is before
    (file.parent / "key.pem").write_bytes(new_key)
    watched.refresh()
    assert watched.current is not before


def test_the_old_content_is_used_again_after_a_bad_one(file: Path) -> None:
    watched = WatchedConfig(file)
    good = file.read_text()
    file.write_text("bad: 1")
    watched.refresh()
    file.write_text(good.replace("{a:", "{b:"))
    watched.refresh()
    assert set(watched.current.config.users) == {b"b"}


def test_a_change_is_seen_without_being_asked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_config, "_INTERVAL_SECONDS", 0.01)
    with WatchedConfig(file) as watched:
        file.write_text(f"{TLS}basic_auth_users: {{later: {hash_of('x')}}}\n")
        wait_until(lambda: set(watched.current.config.users) == {b"later"})


def test_an_endless_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="/dev/zero is larger than 1 MiB"):
        WatchedConfig(Path("/dev/zero"))
