"""The file of ``--web.config.file``: the web configuration of the Prometheus exporters.

Its format is that of prometheus/exporter-toolkit (docs/web-configuration.md there). What this
server does not offer is refused, so that nobody relies on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError
from .strict_yaml import Node, load_mapping
from .tls import TlsSettings, tls_settings

# The headers that may be set, with their only values where there is a list of them.
_HEADERS: Mapping[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
_BCRYPT_HASH = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_LEAST_COST = 4
# Each step doubles the time: 16 takes seconds, which is what a scrape may take.
_GREATEST_COST = 16


@dataclass(frozen=True)
class WebConfig:
    """What is in force.

    Attributes:
        tls: how connections are encrypted; ``None``: they are not.
        headers: added to every answer.
        users: bcrypt hash by name; empty: no name and password is asked for.
    """

    tls: TlsSettings | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    users: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)

    @property
    def authenticates(self) -> bool:
        """Whether every client is known: by its password, or by a certificate."""
        return bool(self.users) or (self.tls is not None and self.tls.client_is_verified)


def parse(content: bytes, folder: Path) -> WebConfig:
    """Read the content of the file. Nothing but this content is read.

    Args:
        content: of the file; empty: nothing is configured.
        folder: what the paths in it are relative to.

    Raises:
        ConfigError: it is not one, or asks for what is not offered.
    """
    root = load_mapping(content)
    root.allow("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")
    if root.items.get("rate_limit"):
        raise ConfigError("rate_limit is not offered", "remove it, or put a proxy in front")
    return WebConfig(
        tls_settings(root.mapping("tls_server_config"), folder),
        _headers(root.mapping("http_server_config")),
        _users(root.mapping("basic_auth_users")),
    )


def _headers(node: Node) -> tuple[tuple[bytes, bytes], ...]:
    node.allow("http2", "headers")
    if node.flag("http2", default=False):
        raise ConfigError(
            "http_server_config.http2 is not offered", "remove it: clients then use HTTP/1.1"
        )
    headers = node.mapping("headers")
    headers.allow(*_HEADERS)
    return tuple(
        (name.lower().encode(), _header_value(name, value).encode())
        for name in _HEADERS
        if (value := headers.text(name))
    )


def _header_value(name: str, value: str) -> str:
    allowed = _HEADERS[name]
    if allowed and value not in allowed:
        raise ConfigError(f"{name}: {value!r} is not accepted", f"write {' or '.join(allowed)}")
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(f"{name}: {value!r} is not accepted", "write printable ASCII")
    return value


def _users(node: Node) -> dict[bytes, bytes]:
    users = {}
    for name in node.items:
        known = _BCRYPT_HASH.fullmatch(node.text(name))
        if known is None:
            raise ConfigError(
                f"basic_auth_users: the password of {name!r} is not a bcrypt hash",
                "make one with: htpasswd -nBC 10 ''",
            )
        if not _LEAST_COST <= int(known[1]) <= _GREATEST_COST:
            raise ConfigError(
                f"basic_auth_users: the hash of {name!r} has cost {int(known[1])}",
                f"use {_LEAST_COST} to {_GREATEST_COST}; 10 is usual",
            )
        if ":" in name:
            raise ConfigError(f"basic_auth_users: {name!r} has a colon", "no client can send it")
        users[name.encode()] = known[0].encode()
    return users
