"""A real Prometheus in a process of its own, for tests that ask it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus"
)


@dataclass(frozen=True)
class Target:
    """What is scraped: host:port, and the labels that it gets besides its own."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)


def scrape_config(*targets: Target, interval: float = 0.2) -> dict[str, Any]:
    """Return a configuration that scrapes each target so many seconds apart."""
    every = f"{round(interval * 1000)}ms"
    static = [{"targets": [one.address], "labels": dict(one.labels)} for one in targets]
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every},
        "scrape_configs": [{"job_name": "npu", "static_configs": static}],
    }


@contextmanager
def prometheus(folder: Path, target: str, **how: object) -> Iterator[str]:
    """Scrape ``target`` (host:port) until the block ends; gives the address of Prometheus.

    Args:
        folder: for its files.
        target: what it scrapes.
        how: more settings of the scrape job.
    """
    config = scrape_config(Target(target))
    config["scrape_configs"][0].update(how)
    with prometheus_with(config, folder) as address:
        yield address


@contextmanager
def prometheus_with(config: Mapping[str, Any], folder: Path, *flags: str) -> Iterator[str]:
    """Run Prometheus with a configuration, its data in ``folder/tsdb``, until the block ends."""
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(config), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={address}",
        *flags,
    ]
    with (folder / "prometheus.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield address
        finally:
            process.terminate()
            try:
                process.wait(10)
            finally:
                process.kill()
                process.wait()


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def ask(address: str, path: str, **parameters: str) -> Any:
    """Return ``data`` of an answer of the API; ``None`` while Prometheus is not there yet."""
    query = urllib.parse.urlencode(parameters)
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{query}", timeout=30) as reply:
            return json.load(reply)["data"]
    except urllib.error.HTTPError as error:
        if error.code == 503:  # still reading its log
            return None
        raise AssertionError(f"{parameters}: {error.read().decode()}") from error
    except (urllib.error.URLError, ConnectionError):
        return None


def answer(address: str, query: str) -> dict[str, float]:
    """Values of an instant query by ``npu``, ``""`` where there is no such label.

    Nothing while Prometheus is not there yet.
    """
    data = ask(address, "query", query=query) or {"result": []}
    return {row["metric"].get("npu", ""): float(row["value"][1]) for row in data["result"]}
