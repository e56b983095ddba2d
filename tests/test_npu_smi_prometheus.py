"""A real Prometheus joins fallbacks and devices on ``npu``. Needs ``prometheus`` (apt)."""

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

from tests.support import npu_smi_samples as samples
from tests.support.exporter_process import serving, wait_until
from tests.support.npu_smi_standin import Reply, StandIn
from tests.support.page_factory import PageFactory, writer_of

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus"
    ),
]

#: Fallbacks per second on chips that are mostly idle meanwhile; stands in docs/npu-smi.md.
QUERY = (
    "sum by (npu) (rate(npu_fallback_kind_events_total[{window}]))"
    " * on (npu) group_left () (npu_aicore_utilization_ratio < 0.5)"
)
DOCUMENTATION = Path(__file__).parent.parent / "docs" / "npu-smi.md"


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Scrape ``target`` (host:port) until the block ends; gives the address of Prometheus."""
    config = folder / "prometheus.yml"
    job = {"job_name": "npu", "static_configs": [{"targets": [target]}]}
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
    """Values of an instant query by ``npu``; nothing while Prometheus is not there yet."""
    parameters = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/query?{parameters}") as reply:
            found: dict[str, Any] = json.load(reply)
    except (urllib.error.URLError, ConnectionError):
        return {}
    return {row["metric"]["npu"]: float(row["value"][1]) for row in found["data"]["result"]}


def test_one_query_joins_fallback_rate_and_ai_core_utilization(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    info = samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt")
    stand_in.reply({"info": Reply(info)}, Reply("This device does not support querying this.\n"))
    # A server in a container that sees /dev/davinci5 alone calls it 0. The other sees
    # nothing that would decide its chip.
    decided = PageFactory(davinci_devices=(1 << 5, 0, 0, 0))
    undecided = PageFactory()
    pages = tmp_path / "pages"
    pages.mkdir()
    paths = [page.events("aten::fmax.out", 1).write(pages) for page in (decided, undecided)]
    flags = ("--npu-smi", str(stand_in.path), "--npu-smi-interval", "0.5")
    with (
        writer_of(paths[0]),
        writer_of(paths[1]),
        serving(*flags, pages=pages) as exporter,
        prometheus(tmp_path, exporter.url.split("/")[2]) as address,
    ):
        events = 1
        joined: dict[str, float] = {}

        def count_and_ask() -> bool:
            nonlocal events, joined
            events += 1
            for page in (decided, undecided):
                page.events("aten::fmax.out", events).write(pages)
            joined = answer(address, QUERY.format(window="20s"))
            return joined.get("5", 0) > 0

        wait_until(count_and_ask, 90, "no joined sample")
        rates = "sum by (npu) (rate(npu_fallback_kind_events_total[20s]))"
        assert set(answer(address, rates)) == {"5", "logical-0"}
        # Chip 5 alone has both sides: the undecided page joins with nothing.
        assert set(joined) == {"5"}


def test_the_documentation_has_this_query() -> None:
    words = " ".join(DOCUMENTATION.read_text(encoding="utf-8").split())
    assert QUERY.format(window="5m") in words


def test_promtool_finds_nothing_to_say(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path)
    stand_in.reply(
        {
            "info": Reply(samples.text_of("info/910a_24.1.RC2_doc_warning_4procs.txt")),
            "info -t usages -i 0": Reply(samples.text_of("type/usages_910a-gen_doc.txt")),
        }
    )
    flags = ("--npu-smi", str(stand_in.path), "--npu-smi-interval", "0.2")
    with serving(*flags, pages=tmp_path) as exporter:
        wait_until(lambda: exporter.value("npu_ctrlcpu_utilization_ratio", npu="0") is not None)
        wait_until(lambda: exporter.value("npu_host_cpu_utilization_ratio") is not None)
        text, _ = exporter.scrape()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
