"""What the page's paths answer: files, languages, the report, and to whom which details."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_fallback_exporter.web import page_files
from npu_fallback_exporter.web.app import ExporterApp
from npu_fallback_exporter.web.local_names import is_local_name
from npu_fallback_exporter.web.runbook import PAGE, anchor, render

from .support.asgi import Answer, ask, run
from .support.exporter_process import serving, values_of
from .support.page_factory import PageFactory, writer_of
from .support.report_scene import Scene, armed, call_site
from .support.web import authorization, get, hash_of
from .test_report_output import Elements

ROOT = Path(__file__).parent.parent
FILES = ("index.html", "page.css", "page.js")
SECRETS = ("/srv/model.py", "float32", '"pid":100')


def page_with_secrets() -> PageFactory:
    page = armed(pid=100).events("aten::fmax.out", 30)
    call_site(page, "aten::fmax.out", "/srv/model.py", 12, "forward")
    return page


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Return an exporter of one live process."""
    made = Scene(tmp_path)
    made.live(page_with_secrets())
    yield made
    made.close()


def answer(app: ExporterApp, path: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return run(ask(app, path, headers=named))


def test_the_report_is_json_that_nobody_keeps(scene: Scene) -> None:
    got = answer(scene.app(), "/api/v1/report")
    assert (got.status, got.headers["content-type"]) == (200, "application/json")
    assert got.headers["cache-control"] == "no-store"
    content = json.loads(got.body)
    assert (content["format"], content["format_version"]) == ("npu-fallback-report", 1)
    assert content["ops"][0]["events"] == 30


def test_the_report_is_compressed_where_gzip_is_accepted(scene: Scene) -> None:
    app = scene.app()
    packed = answer(app, "/api/v1/report", accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == answer(app, "/api/v1/report").body


def test_reports_within_two_seconds_are_one_collection(scene: Scene) -> None:
    app = scene.app()
    first = answer(app, "/api/v1/report").body
    scene.pass_time(60)
    assert answer(app, "/api/v1/report").body == first


def test_the_report_says_that_the_pages_cannot_be_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.composite._collectors[0]._folders = None  # type: ignore[attr-defined]
    content = json.loads(answer(scene.app(), "/api/v1/report").body)
    assert content["findings"][0]["alert"] == "NpuFallbackCollectorFailed"
    assert content["findings"][0]["level"] == "bad"


def test_the_report_has_exactly_the_numbers_of_the_scrape(tmp_path: Path) -> None:
    page = page_with_secrets().events("aten::b", 11, npu=1).sync("aten::nonzero", 4)
    with writer_of(page.write(tmp_path)), serving("--no-npu-smi", pages=tmp_path) as exporter:
        PageFactory().events("aten::fmax.out", 5).write(tmp_path)
        content = json.loads(get(exporter.port, "/api/v1/report").body)
        values = values_of(exporter.scrape()[0])

    def total(name: str, **labels: str) -> float:
        wanted = set(labels.items())
        return sum(
            value for (found, has), value in values.items() if found == name and wanted <= set(has)
        )

    assert len(content["ops"]) == 2
    for op in content["ops"]:
        of = {"op": op["op"], "kind": op["kind"]}
        assert op["events"] == total("npu_fallback_events_total", **of)
        assert op["host_seconds"] == total("npu_fallback_host_seconds_total", **of)
        for direction in ("d2h", "h2d"):
            moved = total("npu_fallback_transfer_bytes_total", direction=direction, **of)
            assert op[f"bytes_{direction}"] == moved
    assert content["events"] == total("npu_fallback_kind_events_total") == 46
    assert content["syncs"] == {"aten::nonzero": total("npu_syncs_total")}


@pytest.mark.parametrize(
    ("flags", "host", "shown"),
    [
        ((), "127.0.0.1", True),
        ((), "localhost:10837", True),
        ((), "rebound.example", False),
        (("--no-web.show-call-sites",), "127.0.0.1", False),
        (("--web.show-call-sites",), "proxy.example", True),
        (("--web.listen-address", ":0"), "127.0.0.1", False),
        (("--web.listen-address", ":0", "--web.show-call-sites"), "127.0.0.1", True),
    ],
)
def test_call_sites_are_shown_to_whom_they_may_be(
    tmp_path: Path, flags: tuple[str, ...], host: str, shown: bool
) -> None:
    with (
        writer_of(page_with_secrets().write(tmp_path)),
        serving("--no-npu-smi", *flags, pages=tmp_path) as exporter,
    ):
        port = exporter.port
        body = get(port, "/api/v1/report", headers={"Host": host}).body
        assert [secret in body for secret in SECRETS] == [shown] * len(SECRETS)
        assert json.loads(body)["shows_details"] is shown
        scrape = get(port, "/metrics").body
        assert not any(secret in scrape for secret in SECRETS)


def test_call_sites_are_shown_on_every_interface_where_a_password_is_asked_for(
    tmp_path: Path,
) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users:\n  ops: {hash_of('right')}\n")
    config.chmod(0o600)
    flags = ("--no-npu-smi", "--web.listen-address", ":0", "--web.config.file", str(config))
    with (
        writer_of(page_with_secrets().write(tmp_path)),
        serving(*flags, pages=tmp_path) as exporter,
    ):
        for path in ("/", "/page.js", "/page.css", "/api/v1/report", "/runbook"):
            assert get(exporter.port, path).status == 401
        headers = {**authorization("ops", "right"), "Host": "exporter.example"}
        body = get(exporter.port, "/api/v1/report", headers=headers).body
        assert all(secret in body for secret in SECRETS)


def test_the_page_and_its_files_are_small() -> None:
    assert sum((PAGE.parent / name).stat().st_size for name in FILES) < 60_000


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/page.css", "text/css"),
        ("/page.js", "text/javascript"),
        ("/runbook", "text/html"),
    ],
)
def test_the_pages_policy_lets_nothing_else_run(scene: Scene, path: str, kind: str) -> None:
    got = answer(scene.app(), path)
    assert (got.status, got.headers["content-type"]) == (200, f"{kind}; charset=utf-8")
    policy = got.headers["content-security-policy"]
    assert policy.startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:"
    )
    assert "unsafe" not in policy


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    for name in ("index.html", "runbook.html"):
        text = (PAGE.parent / name).read_text()
        elements = Elements(text)
        assert not {"style"} & elements.names
        assert not {"style", "onclick", "onload"} & elements.attributes
        assert "//" not in text.replace("http://www.w3.org/2000/svg", "")
    script = (PAGE.parent / "page.js").read_text()
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in script


def test_addresses_in_the_page_are_relative_so_that_it_works_behind_a_prefix() -> None:
    for name in ("index.html", "page.js", "runbook.html"):
        text = (PAGE.parent / name).read_text()
        assert not any(f'{attribute}="/' in text for attribute in ("href", "src"))
        assert '"/api' not in text


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.5", "en"),
        ("fr,zh-TW;q=0.3,en;q=0.1", "zh"),
        ("fr", "en"),
        ("zh;q=0", "en"),
        ("zh;q=x,;;", "en"),
    ],
)
def test_the_page_comes_in_the_readers_language(scene: Scene, accepted: str, language: str) -> None:
    got = answer(scene.app(), "/", accept_language=accepted)
    assert f'<html lang="{language}">'.encode() in got.body
    assert got.headers["vary"] == "accept-language"
    assert page_files.preferred_language(accepted) == language


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:10837", True),
        ("[::1]:10837", True),
        ("[::1]", True),
        ("::1", True),
        ("10.0.0.7:80", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("a.localhost", True),
        ("", False),
        ("evil.example:10837", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_names_that_only_this_host_can_have(host: str, local: bool) -> None:
    assert is_local_name(host) is local


def test_the_runbook_in_the_package_is_that_of_the_documentation() -> None:
    markdown = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == render(markdown), (
        "run: python -m npu_fallback_exporter.web.runbook docs/runbook.md"
    )


def test_every_alert_that_a_finding_names_is_in_the_runbook() -> None:
    source = (ROOT / "npu_fallback_exporter" / "report" / "findings.py").read_text()
    runbook = PAGE.read_text(encoding="utf-8")
    alerts = {part.split('"')[0] for part in source.split('"Npu')[1:]}
    assert len(alerts) >= 8
    for alert in alerts:
        assert f'id="{anchor(f"Npu{alert}")}"' in runbook


def test_the_runbook_is_well_formed_and_its_links_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert {"table", "pre", "ol", "h3"} <= Elements(text).names
    links = [part.split('"')[0] for part in text.split('href="#')[1:]]
    assert links
    assert all(f'id="{link}"' in text for link in links)
