"""Where an exporter listens. Needs no web server: ``doctor`` runs where none is."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigError

_MAX_PORT = 65535


@dataclass(frozen=True)
class ListenAddress:
    """Where to listen. An empty host means every interface."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """Read ``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT``.

        Raises:
            ConfigError: it is none of these.
        """
        host, colon, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if bracketed:
            host = host[1:-1]
        number = int(port) if port.isascii() and port.isdigit() else -1
        if not colon or not 0 <= number <= _MAX_PORT or (":" in host and not bracketed):
            raise ConfigError(
                f"{text!r} is not an address to listen on", "write HOST:PORT or :PORT, like :10837"
            )
        return cls(host, number)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
