"""The ASGI application: which path answers what."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..collectors.composite import CompositeCollector, Snapshot
from ..report.live import report_of_snapshot
from ..report.model import Report
from . import page_files
from .basic_auth import BasicAuth, Verdict
from .exposition import Answer, accepts_gzip
from .local_names import is_local_name
from .report_api import ReportApi
from .single_flight import SingleFlight
from .web_config import WebConfig

_log = logging.getLogger(__name__)

_Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[_Message]]
Send = Callable[[_Message], Awaitable[None]]

_METHODS = ("GET", "HEAD")
# Probes of an orchestrator have no password; what they are told is one word.
_OPEN_PATHS = ("/healthz", "/readyz")
_NOT_COLLECTED = "no collection has finished yet"
_CHALLENGE = (b"www-authenticate", b'Basic realm="npu-fallback-exporter", charset="UTF-8"')
_REFUSALS = {
    Verdict.UNKNOWN: ("unauthorized\n", _CHALLENGE),
    Verdict.TOO_MANY: ("too many passwords at once\n", (b"retry-after", b"1")),
}


@dataclass(frozen=True)
class Response:
    """One answer. Headers beside those of every answer are pairs of bytes."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class ExporterApp:
    """Answers scrapes and probes.

    Scrapes at the same time share one collection, which runs outside the event loop: a slow one
    delays neither probes nor other paths.

    Args:
        collectors: asked at every scrape, and once at start.
        needed: names of the collectors that must have succeeded once before it is ready.
        config: the web configuration of the moment.
        shows_details: whether answers other than the metrics may name paths and call sites;
            ``/readyz``, which everybody may ask, does so only where nobody is asked for a password.
        details_by_local_name: only to clients that name this host by its address or as localhost.
        report: makes the report of a collection; None: of that alone.
    """

    def __init__(
        self,
        collectors: CompositeCollector,
        needed: tuple[str, ...] = (),
        config: Callable[[], WebConfig] = WebConfig,
        shows_details: bool = True,
        details_by_local_name: bool = False,
        report: Callable[[Snapshot], Report] | None = None,
    ) -> None:
        self._collectors = collectors
        self._needed = needed
        self._config = config
        self._shows_details = shows_details
        self._details_by_local_name = details_by_local_name
        self._auth = BasicAuth()
        self._not_ready: str | None = _NOT_COLLECTED
        self._scrape = SingleFlight(self._collect)
        self._first: asyncio.Task[Answer] | None = None
        self._report_api = ReportApi(self._snapshot, report or _report_of_now)
        self._routes: dict[str, Callable[[dict[bytes, bytes]], Awaitable[Response]]] = {
            "/": self._page,
            "/page.css": partial(self._page_file, "page.css"),
            "/page.js": partial(self._page_file, "page.js"),
            "/runbook": partial(self._page_file, "runbook.html"),
            "/api/v1/report": self._report,
            "/metrics": self._metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
        }

    async def __call__(self, scope: _Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            with _under_way(scope):
                config = self._config()
                response = await self._refusal(scope, config) or await self._answer(scope)
                await _respond(response, scope["method"], config.headers, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                # Without waiting: a probe may ask before the first scrape.
                self._first = asyncio.create_task(self._scrape.result())
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _refusal(self, scope: _Message, config: WebConfig) -> Response | None:
        """Return the answer to a client that may not come in; ``None`` for one that may."""
        if not config.users or scope["path"] in _OPEN_PATHS:
            return None
        authorization = dict(scope["headers"]).get(b"authorization")
        client = (scope.get("client") or ("",))[0]
        verdict = await self._auth.verdict(authorization, config.users, client)
        if verdict is Verdict.ADMITTED:
            return None
        text, header = _REFUSALS[verdict]
        return _text(verdict.value, text, header)

    async def _answer(self, scope: _Message) -> Response:
        route = self._routes.get(scope["path"])
        if route is None:
            return _text(404, "not found: the metrics are at /metrics\n")
        if scope["method"] not in _METHODS:
            allow = (b"allow", ", ".join(_METHODS).encode())
            return _text(405, f"use {' or '.join(_METHODS)}\n", allow)
        try:
            return await route(dict(scope["headers"]))
        except Exception as error:
            _log.error("cannot answer %s: %s: %s", scope["path"], type(error).__name__, error)
            return _text(500, "internal error: see the log of the exporter\n")

    def _collect(self) -> Answer:
        snapshot = self._collectors.snapshot()
        if self._not_ready is not None:
            failed = [
                f"collector {name} failed ({why})"
                for name, why in snapshot.failures.items()
                if name in self._needed
            ]
            self._not_ready = "; ".join(failed) or None
        return Answer(snapshot)

    async def _metrics(self, headers: dict[bytes, bytes]) -> Response:
        accept = headers.get(b"accept", b"").decode("latin-1")
        in_gzip = _accepts_gzip(headers)
        answer = await self._scrape.result()
        # Writing a large answer takes long enough to keep probes waiting.
        exposition = await asyncio.to_thread(answer.exposition, accept, in_gzip)
        vary = (b"vary", b"accept, accept-encoding")
        headers_ = (*_coding(in_gzip), vary)
        return Response(200, exposition.content_type, exposition.body, headers_)

    async def _snapshot(self) -> Snapshot:
        return (await self._scrape.result()).snapshot

    async def _report(self, headers: dict[bytes, bytes]) -> Response:
        in_gzip = _accepts_gzip(headers)
        body = await self._report_api.body(
            with_details=self._may_see_details(headers), in_gzip=in_gzip
        )
        more = ((b"vary", b"accept-encoding"), (b"cache-control", b"no-store"))
        return Response(200, "application/json", body, (*_coding(in_gzip), *more))

    def _may_see_details(self, headers: dict[bytes, bytes]) -> bool:
        if not self._shows_details or not self._details_by_local_name:
            return self._shows_details
        return is_local_name(headers.get(b"host", b"").decode("latin-1"))

    async def _page(self, headers: dict[bytes, bytes]) -> Response:
        language = headers.get(b"accept-language", b"").decode("latin-1")
        page = page_files.index(language)
        vary = (b"vary", b"accept-language")
        return Response(200, page.content_type, page.body, (*page_files.HEADERS, vary))

    async def _page_file(self, name: str, _headers: dict[bytes, bytes]) -> Response:
        file = page_files.page_file(name)
        return Response(200, file.content_type, file.body, page_files.HEADERS)

    async def _healthz(self, _headers: dict[bytes, bytes]) -> Response:
        return _text(200, "ok\n")

    async def _readyz(self, _headers: dict[bytes, bytes]) -> Response:
        if self._not_ready is None:
            return _text(200, "ready\n")
        if self._config().users or not self._shows_details:
            return _text(503, "not ready: see the log of the exporter\n")
        return _text(503, f"not ready: {self._not_ready}\n")


def _report_of_now(snapshot: Snapshot) -> Report:
    return report_of_snapshot(snapshot, time.time())


def _accepts_gzip(headers: dict[bytes, bytes]) -> bool:
    return accepts_gzip(headers.get(b"accept-encoding", b"").decode("latin-1"))


def _coding(in_gzip: bool) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-encoding", b"gzip"),) if in_gzip else ()


def _text(status: int, text: str, *headers: tuple[bytes, bytes]) -> Response:
    return Response(status, "text/plain; charset=utf-8", text.encode(), headers)


async def _respond(
    response: Response, method: str, configured: tuple[tuple[bytes, bytes], ...], send: Send
) -> None:
    headers = {
        b"content-type": response.content_type.encode("latin-1", "replace"),
        b"content-length": str(len(response.body)).encode(),
        b"x-content-type-options": b"nosniff",
        **dict(response.headers),
        **dict(configured),
    }
    start = {"type": "http.response.start", "status": response.status}
    await send({**start, "headers": list(headers.items())})
    body = b"" if method == "HEAD" else response.body
    await send({"type": "http.response.body", "body": body})


def _under_way(scope: _Message) -> AbstractContextManager[None]:
    """Let the connection know how long the request takes, where a server has put it there."""
    connection = scope.get("state", {}).get("connection")
    return nullcontext() if connection is None else connection.answering()
