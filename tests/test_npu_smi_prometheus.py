"""A real Prometheus joins fallbacks and devices on ``npu``. Needs ``prometheus`` (apt)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import npu_smi_samples as samples
from tests.support.exporter_process import serving, wait_until
from tests.support.npu_smi_standin import Reply, StandIn
from tests.support.page_factory import PageFactory, writer_of
from tests.support.prometheus_process import answer, needs_prometheus, prometheus

pytestmark = [pytest.mark.timeout(180), needs_prometheus]

#: Fallbacks per second on chips that are mostly idle meanwhile; stands in docs/npu-smi.md.
QUERY = (
    "sum by (npu) (rate(npu_fallback_kind_events_total[{window}]))"
    " * on (npu) group_left () (npu_aicore_utilization_ratio < 0.5)"
)
DOCUMENTATION = Path(__file__).parent.parent / "docs" / "npu-smi.md"


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
