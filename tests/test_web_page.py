"""The page in a real Chromium: what it shows, that it stays true, and that all can read it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.arm_failure import record
from npu_fallback_exporter.report import html

from .support.chromium import Chromium, Tab, chromium
from .support.exporter_process import serving
from .support.page_factory import PageFactory, writer_of
from .support.report_scene import Scene, armed, busy_service
from .support.web import Certificates, hash_of

pytestmark = pytest.mark.timeout(120)

#: The page has asked and shown what it was told.
SHOWN = "document.querySelectorAll('#figures dd').length > 0"
HOSTILE = "aten::<img src=x onerror=document.title='owned'>\"'&"

#: Text whose contrast with what is behind it is too small (WCAG AA: 4.5).
TOO_FAINT = """(() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([red, green, blue]) => {
    const parts = [red, green, blue].map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const bad = [];
  let seen = 0;
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const colour = rgba(element instanceof SVGElement ? style.fill : style.color);
    const [light, dark] = [luminance(colour), luminance(behind(element))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    seen += 1;
    const name = `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`;
    if (ratio < 4.5) bad.push(`${name}: ${ratio.toFixed(2)}`);
  }
  return seen > 10 ? bad : ["nothing was looked at"];
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Return a running Chromium."""
    with chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, str]]:
    """Return an exporter that has watched a busy service for 15 minutes, and its address."""
    scene = Scene(tmp_path_factory.mktemp("pages"))
    busy_service(scene)
    with scene.served() as url:
        yield scene, url
    scene.close()


@pytest.fixture
def busy(browser: Chromium, service: tuple[Scene, str]) -> Iterator[Tab]:
    """Return a tab in which the page of the busy service is shown; nothing may complain."""
    tab = browser.open().look()
    tab.go(service[1], SHOWN)
    yield tab
    assert tab.complaints == []


def cell(tab: Tab, op: str, label: str) -> str:
    """Text of one cell of the table of operators, by the name of its column."""
    return str(
        tab.run(
            f"""[...document.querySelectorAll("#ops-table tbody tr")]
            .find((row) => row.querySelector(".op").textContent === {op!r})
            .querySelector('[data-label="{label}"]').textContent"""
        )
    )


def test_an_on_call_engineer_sees_what_is_wrong_first(
    busy: Tab, service: tuple[Scene, str]
) -> None:
    scene, _ = service
    report = scene.report()
    lines = busy.text().splitlines()
    top = "\n".join(lines[:10])
    assert "Act now" in top
    assert "most of it aten::fmax.out" in top
    first = report.ops[0]
    assert cell(busy, first.op, "Events") == f"{first.events:,}"
    assert cell(busy, first.op, "To host") == f"{first.bytes_d2h / (1 << 30):.1f} GiB"
    text = busy.text()
    assert "First called from /srv/llm/model/attention.py:214 in forward" in text
    assert "self float32[64, 151936]" in text
    assert "Instead: torch.maximum, where there are no NaNs" in text
    assert "mode warn (from NPU_FALLBACK_MODE)" in text
    assert "torch_npu 2.13.0" in text
    assert "wait for a value" in text
    assert "aten::_local_scalar_dense" in text


def test_npu_cpu_and_fallbacks_are_on_one_chart(busy: Tab) -> None:
    drawn = busy.run(
        """["npu", "cpu", "rate"].map((name) =>
        document.querySelectorAll(`#chart .${name}.trace`).length)"""
    )
    assert drawn == [3, 2, 1]  # two chips and their mean, host and (empty) container, the rate
    points = busy.run(
        "document.querySelector('#chart .rate.trace').getAttribute('d').match(/[ML]/g).length"
    )
    assert points == 90
    assert busy.run("document.querySelectorAll('#ops-table .trend svg').length") == 3


def test_the_chart_can_be_read_with_the_keyboard(busy: Tab) -> None:
    busy.run("document.getElementById('chart').focus()")
    newest = busy.run("document.getElementById('readout').textContent")
    busy.press("ArrowLeft")
    assert busy.run("document.getElementById('readout').textContent") != newest
    busy.press("ArrowRight")
    assert busy.run("document.getElementById('readout').textContent") == newest


def test_links_lead_to_the_runbook(busy: Tab) -> None:
    target = busy.run("document.querySelector('#verdict a').href")
    busy.go(target)
    assert (
        busy.run("document.querySelector(':target').textContent") == "NpuFallbackHostTimeShareHigh"
    )


def test_the_page_is_the_same_in_chinese_and_remembers_that(
    browser: Chromium, service: tuple[Scene, str]
) -> None:
    tab = browser.open().look(languages="zh-CN,zh;q=0.9").go(service[1], SHOWN)
    assert "主要是 aten::fmax.out" in tab.text()
    assert "替代方案： 没有 NaN 时改用 torch.maximum" in tab.text()
    assert "Operators that ran" not in tab.text()
    assert tab.run("document.documentElement.lang") == "zh"
    tab.run("document.querySelector('[data-language=en]').click()")
    assert "Operators that ran on the host CPU" in tab.text()
    tab.go(service[1], SHOWN)
    assert "Operators that ran on the host CPU" in tab.text()
    assert tab.complaints == []


def test_every_text_is_there_in_both_languages(busy: Tab) -> None:
    names = """((texts) => Object.entries(texts).flatMap(([key, one]) =>
        typeof one === "object" ? Object.keys(one).map((inner) => `${key}.${inner}`) : [key]
    ).sort())"""
    assert busy.run(f"{names}(TEXTS.en)") == busy.run(f"{names}(TEXTS.zh)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("languages", ["en", "zh"])
def test_all_text_has_enough_contrast(
    browser: Chromium, service: tuple[Scene, str], dark: bool, languages: str
) -> None:
    tab = browser.open().look(dark=dark, languages=languages).go(service[1], SHOWN)
    assert tab.run(TOO_FAINT) == []
    ground = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == dark


def test_the_runbook_and_the_saved_report_have_enough_contrast_too(
    browser: Chromium, service: tuple[Scene, str], tmp_path: Path
) -> None:
    scene, url = service
    saved = tmp_path / "report.html"
    saved.write_text(html.document(scene.report()), encoding="utf-8")
    for dark in (False, True):
        for address in (f"{url}runbook", saved.as_uri()):
            tab = browser.open().look(dark=dark).go(address)
            assert tab.run(TOO_FAINT) == []
            assert tab.complaints == []


@pytest.mark.parametrize("width", [320, 360, 500, 900, 1125, 1280])
def test_nothing_is_wider_than_the_window(
    browser: Chromium, service: tuple[Scene, str], width: int
) -> None:
    for path, until in (("", SHOWN), ("runbook", "document.readyState === 'complete'")):
        tab = browser.open().look(width=width).go(f"{service[1]}{path}", until)
        assert tab.run("document.documentElement.scrollWidth") <= width


def test_everything_can_be_reached_and_seen_with_the_keyboard(busy: Tab) -> None:
    visited = []
    for _ in range(40):
        busy.press("Tab")
        state = busy.run(
            """(() => { const one = document.activeElement;
            return [one.textContent.trim().slice(0, 40) || one.id,
                    one === document.body
                    || parseFloat(getComputedStyle(one).outlineWidth) >= 2]; })()"""
        )
        assert state[1], f"the focus on {state[0]} cannot be seen"
        visited.append(state[0])
        if "Readiness" in state[0]:
            break
    assert visited[0] == "Skip to the operators"
    assert {"English", "中文", "What to do", "Metrics", "Runbook", "Readiness"} <= set(visited)


def test_new_events_show_without_a_reload(browser: Chromium, tmp_path: Path) -> None:
    page = armed().events("aten::fmax.out", 3)
    with writer_of(page.write(tmp_path)), serving("--no-npu-smi", pages=tmp_path) as exporter:
        tab = browser.open().look().go(exporter.url.removesuffix("metrics"), SHOWN)
        assert cell(tab, "aten::fmax.out", "Events") == "3"
        page.events("aten::fmax.out", 1234).write(tmp_path)
        tab.wait(
            """document.querySelector('[data-label="Events"]').textContent === '1,234'""",
            seconds=15,
        )
        assert tab.complaints == []


def test_a_hidden_page_asks_nothing(busy: Tab) -> None:
    asked = (
        "performance.getEntriesByType('resource')"
        ".filter((one) => one.name.endsWith('report')).length"
    )
    hide = (
        "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    before = busy.run(asked)
    busy.run(hide % "true")
    assert busy.run(f"(async () => {{ await ask(); return {asked}; }})()") == before
    busy.run(hide % "false")
    busy.wait(f"{asked} > {before}", seconds=4)


def test_a_page_says_when_the_exporter_has_gone_and_keeps_what_it_knew(
    browser: Chromium, tmp_path: Path
) -> None:
    scene = Scene(tmp_path)
    scene.live(armed().events("aten::fmax.out", 3))
    with scene.served() as url:
        tab = browser.open().look().go(url, SHOWN)
    tab.run("ask()")
    assert "The exporter does not answer." in tab.text()
    assert cell(tab, "aten::fmax.out", "Events") == "3"
    scene.close()


def test_a_hostile_operator_is_text(browser: Chromium, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.live(armed(torch_version=b"<b>2</b>").events(HOSTILE, 3).sync(HOSTILE, 2))
    with scene.served() as url:
        tab = browser.open().look().go(url, SHOWN)
        assert HOSTILE in tab.text()
        assert tab.run("document.querySelectorAll('img, b').length") == 0
        assert tab.run("document.title") == "NPU fallbacks"
        assert tab.complaints == []
    scene.close()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("no pages", ["No server process counts yet", "npu-fallback-exporter run --"]),
        ("off", ["No operator has fallen back", "npu-smi is off", "None so far."]),
        ("failing", ["npu-smi gives no fresh sample", "npu-smi gives no sample"]),
        ("arm failures", ["Nothing is counted: the hook could not be armed in 2 processes (hook)"]),
        ("fallbacks only", ["Not watched: NPU_FALLBACK_TRACK=fallbacks"]),
        ("ended", ["No server process is alive now.", "None is alive."]),
    ],
)
def test_a_page_without_figures_says_why(
    browser: Chromium, tmp_path: Path, state: str, words: list[str]
) -> None:
    scene = Scene(tmp_path, npu_smi=state != "off")
    if state in {"off", "failing"}:
        scene.live(armed().shard(0, 100, 100))
    elif state == "fallbacks only":
        scene.live(armed(track=1).slot("aten::a", events=2, duration_ns=10**6))
    elif state == "ended":
        armed().events("aten::a", 2).shard(0, 10, 10).write(tmp_path)
    elif state == "arm failures":
        record(tmp_path, "hook")
        record(tmp_path, "hook")
    if state == "failing":
        scene.utilization = None
    scene.pass_time()
    scene.pass_time()
    with scene.served() as url:
        tab = browser.open().look().go(url, SHOWN)
        text = tab.text()
        assert [one for one in words if one not in text] == []
        assert "undefined" not in text
        assert "NaN" not in text
        assert tab.complaints == []
    scene.close()


def test_it_works_with_tls_and_a_password(browser: Chromium, tmp_path: Path) -> None:
    certificates = Certificates.make(tmp_path)
    config = tmp_path / "web.yml"
    config.write_text(
        "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
        f"basic_auth_users:\n  ops: {hash_of('right')}\n"
    )
    pages = tmp_path / "pages"
    pages.mkdir()
    assert certificates.folder == tmp_path
    PageFactory().events("aten::fmax.out", 3).write(pages)
    flags = ("--no-npu-smi", "--web.config.file", str(config))
    with serving(*flags, pages=pages) as exporter:
        tab = browser.open(user=("ops", "right")).look()
        tab.call("Security.setIgnoreCertificateErrors", ignore=True)
        tab.go(exporter.url.removesuffix("metrics"), SHOWN)
        assert cell(tab, "aten::fmax.out", "Events") == "3"


def test_it_works_behind_a_path_of_a_proxy(browser: Chromium, service: tuple[Scene, str]) -> None:
    port = int(service[1].rstrip("/").rpartition(":")[2])

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", self.path.removeprefix("/npu"))
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status if self.path.startswith("/npu/") else 404)
            for name, value in answer.getheaders():
                if name.lower() not in {"connection", "date", "server"}:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            tab = browser.open().look()
            tab.go(f"http://127.0.0.1:{proxy.server_port}/npu/", SHOWN)
            assert "most of it aten::fmax.out" in tab.text()
            assert tab.complaints == []
        finally:
            proxy.shutdown()
            thread.join()
