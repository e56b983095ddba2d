"""A real Prometheus in a process of its own, for tests that ask it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus"
)


@contextmanager
def prometheus(folder: Path, target: str, **how: object) -> Iterator[str]:
    """Scrape ``target`` (host:port) until the block ends; gives the address of Prometheus.

    Args:
        folder: for its files.
        target: what it scrapes.
        how: more settings of the scrape job.
    """
    config = folder / "prometheus.yml"
    job = {"job_name": "npu", "static_configs": [{"targets": [target]}], **how}
    settings = {"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"}}
    config.write_text(json.dumps({**settings, "scrape_configs": [job]}), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = (folder / "prometheus.log").open("wb")
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address={address}",
        ],
        stdout=log,
        stderr=log,
    )
    try:
        yield address
    finally:
        process.kill()
        process.wait()
        log.close()


def answer(address: str, query: str) -> dict[str, float]:
    """Values of an instant query by ``npu``, ``""`` where there is no such label.

    Nothing while Prometheus is not there yet.
    """
    parameters = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/query?{parameters}") as reply:
            found: dict[str, Any] = json.load(reply)
    except (urllib.error.URLError, ConnectionError):
        return {}
    return {row["metric"].get("npu", ""): float(row["value"][1]) for row in found["data"]["result"]}
