"""``tls_server_config`` of the web configuration, as an SSL context."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .strict_yaml import Node

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS = ("TLS10", "TLS11")
_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
# They ask for a certificate that nobody verifies.
_UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
_CURVES = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}
# Go's names of the suites that it calls secure, with OpenSSL's. Those of TLS 1.3 are always on.
_SUITES_OF_TLS13 = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}


@dataclass(frozen=True)
class Pem:
    """A certificate or a key: its text, or the file that has it."""

    key: str
    text: bytes = field(default=b"", repr=False)
    path: Path | None = None

    def read(self, read_file: Callable[[Path], bytes]) -> bytes:
        """Return the text.

        Raises:
            ConfigError: as `read_file` does.
        """
        return self.text if self.path is None else read_file(self.path)


@dataclass(frozen=True)
class TlsSettings:
    """How connections are encrypted, checked as far as that needs no file."""

    cert: Pem
    key: Pem
    client_ca: Pem | None
    client_auth: ssl.VerifyMode
    min_version: ssl.TLSVersion
    max_version: ssl.TLSVersion
    suites: tuple[str, ...]
    curve: str | None
    prefers_own_suites: bool
    client_sans: frozenset[str]

    @property
    def client_is_verified(self) -> bool:
        """Whether no client without a certificate of the authority gets in."""
        return self.client_auth is ssl.CERT_REQUIRED

    def context(self, read_file: Callable[[Path], bytes]) -> ssl.SSLContext:
        """Return the context of a server.

        Args:
            read_file: returns the content of a file, or raises ConfigError.

        Raises:
            ConfigError: a certificate, a key or a choice cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version, context.maximum_version = self.min_version, self.max_version
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        if not self.prefers_own_suites:
            context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
        if self.suites:
            context.set_ciphers(":".join(self.suites))
        if self.curve is not None:
            context.set_ecdh_curve(self.curve)
        _load_certificate(context, self.cert.read(read_file), self.key.read(read_file))
        if self.client_ca is not None:
            _load_authority(context, self.client_ca, self.client_ca.read(read_file))
            context.verify_mode = self.client_auth
        return context

    def admits(self, certificate: Mapping[str, Any] | None) -> bool:
        """Whether a client with this verified certificate gets in.

        Args:
            certificate: as ``getpeercert()`` gives it.
        """
        if not self.client_sans:
            return True
        names = (certificate or {}).get("subjectAltName", ())
        return any(_canonical(kind, name) in self.client_sans for kind, name in names)


def tls_settings(node: Node, folder: Path) -> TlsSettings | None:
    """Read ``tls_server_config``; ``None`` where it asks for no TLS.

    Args:
        node: the mapping.
        folder: what paths are relative to.

    Raises:
        ConfigError: it is incomplete, contradicts itself, or asks for what is not offered.
    """
    node.allow(
        *("cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file"),
        *("client_auth_type", "client_allowed_sans", "min_version", "max_version"),
        *("cipher_suites", "prefer_server_cipher_suites", "curve_preferences"),
    )
    if not node.items:
        return None
    client_ca = _pem(node, "client_ca", folder)
    client_auth = _client_auth(node.text("client_auth_type", "NoClientCert"), client_ca)
    sans = node.texts("client_allowed_sans")
    if sans and client_auth is not ssl.CERT_REQUIRED:
        raise ConfigError(
            "client_allowed_sans needs verified clients",
            "set client_auth_type to RequireAndVerifyClientCert",
        )
    minimum, maximum = (
        _version(node, "min_version", "TLS12"),
        _version(node, "max_version", "TLS13"),
    )
    if minimum > maximum:
        raise ConfigError("min_version is above max_version", "lower it")
    suites = _suites(node.texts("cipher_suites"))
    if node.texts("cipher_suites") and not suites:
        minimum = maximum = ssl.TLSVersion.TLSv1_3
    return TlsSettings(
        cert=_required(_pem(node, "cert", folder), "cert"),
        key=_required(_pem(node, "key", folder), "key"),
        client_ca=client_ca,
        client_auth=client_auth,
        min_version=minimum,
        max_version=maximum,
        suites=suites,
        curve=_curve(node.texts("curve_preferences")),
        prefers_own_suites=node.flag("prefer_server_cipher_suites", default=True),
        client_sans=frozenset(sans),
    )


def _pem(node: Node, key: str, folder: Path) -> Pem | None:
    text, name = node.text(key), node.text(f"{key}_file")
    if text and name:
        raise ConfigError(f"{key} and {key}_file are both given", "remove one")
    if not text and not name:
        return None
    return Pem(key, text.encode()) if text else Pem(f"{key}_file", path=folder / name)


def _required(pem: Pem | None, key: str) -> Pem:
    if pem is None:
        raise ConfigError(
            f"tls_server_config has no {key}_file", f"name the file, or give {key} as text"
        )
    return pem


def _client_auth(name: str, client_ca: Pem | None) -> ssl.VerifyMode:
    if name in _UNVERIFIED:
        raise ConfigError(
            f"client_auth_type: {name} is not offered, as it verifies nobody",
            "use RequireAndVerifyClientCert",
        )
    if name not in _CLIENT_AUTH:
        raise ConfigError(
            f"client_auth_type: {name!r} is not known", f"use {', '.join(_CLIENT_AUTH)}"
        )
    mode = _CLIENT_AUTH[name]
    if mode is ssl.CERT_NONE and client_ca is not None:
        raise ConfigError(
            "client_ca_file is given without client_auth_type",
            "set client_auth_type to RequireAndVerifyClientCert",
        )
    if mode is not ssl.CERT_NONE and client_ca is None:
        raise ConfigError(
            f"client_auth_type: {name} has no client_ca_file", "name the file of the authority"
        )
    return mode


def _version(node: Node, key: str, default: str) -> ssl.TLSVersion:
    name = node.text(key, default)
    if name not in _VERSIONS:
        offered = "is not offered" if name in _OLD_VERSIONS else "is not known"
        raise ConfigError(f"{key}: {name!r} {offered}", f"use {' or '.join(_VERSIONS)}")
    return _VERSIONS[name]


def _suites(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in _SUITES and name not in _SUITES_OF_TLS13:
            raise ConfigError(f"cipher_suites: {name!r} is not known", f"use {', '.join(_SUITES)}")
    return tuple(_SUITES[name] for name in names if name in _SUITES)


def _curve(names: tuple[str, ...]) -> str | None:
    for name in names:
        if name not in _CURVES:
            raise ConfigError(
                f"curve_preferences: {name!r} is not known", f"use {', '.join(_CURVES)}"
            )
    if len(names) > 1:
        raise ConfigError("curve_preferences: several curves are not offered", "name one, or none")
    return _CURVES[names[0]] if names else None


def _load_certificate(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    # OpenSSL takes files only. These are in memory, so the very bytes that were read are used,
    # and a key that was given as text never reaches a disk.
    with ExitStack() as stack:
        cert_path, key_path = _memory_file(stack, cert), _memory_file(stack, key)
        try:
            context.load_cert_chain(cert_path, key_path, _no_passphrase)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                what = "the key is not that of the certificate"
            else:
                what = "the certificate or the key is no PEM, or the key is encrypted"
            raise ConfigError(what, "check cert_file and key_file") from None


def _load_authority(context: ssl.SSLContext, pem: Pem, content: bytes) -> None:
    try:
        context.load_verify_locations(cadata=content.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{pem.key} has no certificate", "put it there as PEM") from None


def _memory_file(stack: ExitStack, content: bytes) -> str:
    descriptor = os.memfd_create("pem")
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    return f"/proc/self/fd/{descriptor}"


def _no_passphrase() -> bytes:
    # Without it OpenSSL would ask on the terminal, and wait.
    return b""


def _canonical(kind: str, name: str) -> str:
    if kind == "IP Address":
        try:
            return str(ipaddress.ip_address(name.strip()))
        except ValueError:
            return name
    return name
