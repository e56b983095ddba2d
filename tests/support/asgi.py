"""Asking an ASGI application without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar

from npu_fallback_exporter.web.app import ExporterApp

DEADLINE_SECONDS = 30
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Answer:
    """What came back; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def ask(
    app: ExporterApp, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> Answer:
    """Send one request."""
    raw = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "path": path, "headers": raw}, receive, send)
    start, *bodies = sent
    return Answer(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message["body"] for message in bodies),
    )


def run(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Run to the end, or fail at the deadline."""
    return asyncio.run(asyncio.wait_for(coroutine, DEADLINE_SECONDS))
