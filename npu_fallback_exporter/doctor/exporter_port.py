"""Whether an exporter can listen here."""

from __future__ import annotations

import http.client
import socket

from .finding import Finding, ok, problem, warning
from .machine import Machine

_SECONDS = 2.0


def check(machine: Machine) -> tuple[Finding, ...]:
    """Judge the port."""
    where = f"{machine.host}:{machine.port}"
    trouble = _trouble(machine.host, machine.port)
    if not trouble:
        return (ok("port", f"{where} is free"),)
    another = "choose another port with serve --web.listen-address"
    if "in use" not in trouble:
        return (problem("port", f"cannot listen on {where} ({trouble})", another),)
    if _is_an_exporter(machine.host, machine.port):
        return (ok("port", f"an exporter listens on {where}; a second one would stand by"),)
    return (
        warning(
            "port", f"{where} is taken by something that does not answer as an exporter", another
        ),
    )


def _trouble(host: str, port: int) -> str:
    """Return why the port cannot be had; empty if it can. It is given back at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _is_an_exporter(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host or "127.0.0.1", port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        return b"npu_fallback_" in connection.getresponse().read(1 << 16)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
