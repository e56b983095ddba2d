"""A real Alertmanager in a process of its own, and a webhook that keeps what it sends."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.prometheus_process import free_port

#: Debian's name of it; the project's own second.
_COMMANDS = ("prometheus-alertmanager", "alertmanager")
_COMMAND = next(filter(shutil.which, _COMMANDS), None)

needs_alertmanager = pytest.mark.skipif(
    _COMMAND is None, reason="no alertmanager: apt-get install prometheus-alertmanager"
)


class Webhook(ThreadingHTTPServer):
    """Receives notifications: their number, and every alert in them in the order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages = 0
        self.alerts: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """Where notifications go."""
        return f"http://127.0.0.1:{self.server_port}/alerts"


class _Handler(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.messages += 1
        self.server.alerts.extend(json.loads(self.rfile.read(length))["alerts"])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def alertmanager(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Run it with a configuration until the block ends; gives its address."""
    assert _COMMAND is not None
    file = folder / "alertmanager.yml"
    file.write_text(json.dumps(config), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        _COMMAND,
        f"--config.file={file}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",  # alone
    ]
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield address
        finally:
            process.kill()
            process.wait()
