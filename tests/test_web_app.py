"""What each path answers."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily

from npu_fallback_exporter.collectors.composite import CompositeCollector
from npu_fallback_exporter.web.app import ExporterApp
from npu_fallback_exporter.web.web_config import WebConfig

from .support.asgi import DEADLINE_SECONDS, Answer, ask, run


class _Counting:
    """Counts its collections, and holds them up while the gate is closed."""

    name = "fallback"

    def __init__(self) -> None:
        self.collections = 0
        self.failing = False
        self.started = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def collect(self) -> Iterable[Metric]:
        self.collections += 1
        self.started.set()
        assert self.gate.wait(DEADLINE_SECONDS)
        if self.failing:
            raise OSError("no folder")
        return [CounterMetricFamily("collections_total", "Collections.", self.collections)]


@pytest.fixture
def source() -> _Counting:
    """Return the only collector of `app`."""
    return _Counting()


@pytest.fixture
def app(source: _Counting) -> ExporterApp:
    """Return an application that needs its collector to be ready."""
    return ExporterApp(CompositeCollector([source]), needed=("fallback",))


def _get(app: ExporterApp, path: str, method: str = "GET", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return run(ask(app, path, method, named))


def test_metrics_are_text_unless_asked_otherwise(app: ExporterApp) -> None:
    answer = _get(app, "/metrics")
    assert (answer.status, b"collections_total 1.0\n" in answer.body) == (200, True)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_metrics_are_openmetrics_on_request(app: ExporterApp) -> None:
    answer = _get(app, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.body.endswith(b"# EOF\n")


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "text/html",
        "text/plain; version=x.y",
        ";;,",
        "é",
    ],
)
def test_an_accept_header_that_makes_no_sense_gets_text(app: ExporterApp, accept: str) -> None:
    answer = _get(app, "/metrics", accept=accept)
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/plain")


def test_a_version_that_makes_no_sense_is_answered_all_the_same(app: ExporterApp) -> None:
    answer = _get(app, "/metrics", accept="application/openmetrics-text; version=abc")
    assert (answer.status, b"collections_total 1.0\n" in answer.body) == (200, True)


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip;q=0.5", "GZIP"])
def test_metrics_are_compressed_where_gzip_is_accepted(app: ExporterApp, accepted: str) -> None:
    answer = _get(app, "/metrics", accept_encoding=accepted)
    assert answer.headers["content-encoding"] == "gzip"
    assert b"collections_total" in gzip.decompress(answer.body)


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "gzip; q=0.000", "xgzip"])
def test_metrics_are_plain_where_gzip_is_not_accepted(app: ExporterApp, accepted: str) -> None:
    answer = _get(app, "/metrics", accept_encoding=accepted)
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/"])
def test_head_answers_as_get_without_a_body(app: ExporterApp, path: str) -> None:
    answer = _get(app, path, "HEAD")
    assert answer.body == b""
    assert int(answer.headers["content-length"]) > 0


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_and_the_right_ones_are_named(
    app: ExporterApp, path: str, method: str
) -> None:
    answer = _get(app, path, method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/metrics/", "/x", "/../etc/passwd", "//metrics", "/favicon.ico"])
def test_other_paths_are_not_found(app: ExporterApp, path: str) -> None:
    assert _get(app, path).status == 404


def test_the_page_for_people_links_to_the_metrics(app: ExporterApp) -> None:
    answer = _get(app, "/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b'href="metrics"' in answer.body


def test_nobody_else_may_read_the_answers_in_a_browser(app: ExporterApp) -> None:
    names = set(_get(app, "/metrics").headers)
    assert not {name for name in names if name.startswith("access-control-")}


def test_it_is_not_ready_before_the_first_collection(app: ExporterApp) -> None:
    answer = _get(app, "/readyz")
    assert answer.status == 503
    assert answer.body == b"not ready: no collection has finished yet\n"


def test_it_is_not_ready_when_what_it_needs_failed_and_says_why(
    app: ExporterApp, source: _Counting
) -> None:
    source.failing = True
    _get(app, "/metrics")
    answer = _get(app, "/readyz")
    assert answer.status == 503
    assert answer.body == b"not ready: collector fallback failed (OSError: no folder)\n"


@pytest.mark.parametrize(
    ("config", "shows_details"), [(WebConfig(), False), (WebConfig(users={b"a": b"hash"}), True)]
)
def test_why_it_is_not_ready_is_kept_from_strangers(
    source: _Counting, config: WebConfig, shows_details: bool
) -> None:
    source.failing = True
    app = ExporterApp(
        CompositeCollector([source]), ("fallback",), lambda: config, shows_details=shows_details
    )
    answer = _get(app, "/readyz")
    assert (answer.status, answer.body) == (503, b"not ready: see the log of the exporter\n")


def test_it_stays_ready_once_it_was(app: ExporterApp, source: _Counting) -> None:
    _get(app, "/metrics")
    source.failing = True
    _get(app, "/metrics")
    assert _get(app, "/readyz").status == 200


def test_it_collects_at_start_without_a_scrape(app: ExporterApp, source: _Counting) -> None:
    async def start() -> None:
        messages = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, str]:
            return {"type": next(messages)}

        async def send(_message: object) -> None:
            pass

        await app({"type": "lifespan"}, receive, send)
        # Joins the collection that the start began.
        await ask(app, "/metrics")

    run(start())
    assert source.collections == 1


def test_scrapes_at_the_same_time_share_one_collection(app: ExporterApp, source: _Counting) -> None:
    source.gate.clear()

    async def scrape_together() -> list[Answer]:
        scrapes = [asyncio.create_task(ask(app, "/metrics")) for _ in range(5)]
        await asyncio.to_thread(source.started.wait, DEADLINE_SECONDS)
        source.gate.set()
        return await asyncio.gather(*scrapes)

    answers = run(scrape_together())
    assert source.collections == 1
    assert len({answer.body for answer in answers}) == 1


def test_a_scrape_after_another_collects_anew(app: ExporterApp, source: _Counting) -> None:
    _get(app, "/metrics")
    _get(app, "/metrics")
    assert source.collections == 2


def test_a_slow_collection_delays_no_probe(app: ExporterApp, source: _Counting) -> None:
    source.gate.clear()

    async def probe() -> Answer:
        scrape = asyncio.create_task(ask(app, "/metrics"))
        await asyncio.to_thread(source.started.wait, DEADLINE_SECONDS)
        answer = await ask(app, "/healthz")
        assert not scrape.done()
        source.gate.set()
        await scrape
        return answer

    assert run(probe()).status == 200


def test_a_client_that_leaves_takes_no_scrape_from_the_others(
    app: ExporterApp, source: _Counting
) -> None:
    source.gate.clear()

    async def leave_early() -> Answer:
        leaving = asyncio.create_task(ask(app, "/metrics"))
        staying = asyncio.create_task(ask(app, "/metrics"))
        await asyncio.to_thread(source.started.wait, DEADLINE_SECONDS)
        leaving.cancel()
        source.gate.set()
        return await staying

    assert run(leave_early()).status == 200
