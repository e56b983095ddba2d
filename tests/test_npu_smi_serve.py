"""``serve`` beside an npu-smi that misbehaves: no scrape waits for it, and it recovers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from npu_fallback_exporter.cli.main import main
from tests.support import npu_smi_samples as samples
from tests.support.exporter_process import Exporter, serving, wait_until
from tests.support.npu_smi_standin import Reply, StandIn

pytestmark = pytest.mark.timeout(120)

INFO = samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt")
GOOD = {
    "info": Reply(INFO),
    "info -m": Reply(samples.text_of("map/m_910b_doc_mcu.txt")),
    "info -t usages -i 0": Reply(samples.text_of("type/usages_910b_25.5.1.txt")),
}
NONE = Reply("This device does not support querying usages.\n")
#: A scrape takes some milliseconds; a call that hangs would take the deadline of ten seconds.
SLOW_SCRAPE_SECONDS = 5.0


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def arguments(stand_in: StandIn) -> tuple[str, ...]:
    return ("--npu-smi", str(stand_in.path), "--npu-smi-interval", "0.2")


def is_up(exporter: Exporter) -> bool:
    return exporter.value("npu_smi_up") == 1


def failures(exporter: Exporter, reason: str) -> float:
    return exporter.value("npu_smi_sample_failures_total", reason=reason) or 0


def test_all_of_it_reaches_a_scrape(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.reply(GOOD, NONE)
    with serving(*arguments(stand_in), pages=tmp_path) as exporter:
        wait_until(lambda: exporter.value("npu_ctrlcpu_utilization_ratio", npu="0") == 0.06)
        values = exporter.values()
        assert values["npu_aicore_utilization_ratio", (("npu", "5"),)] == 0.12
        process = (("npu", "5"), ("process", "VLLMEngineCore"))
        assert values["npu_process_memory_bytes", process] == 56630 * 1024**2
        success = (("collector", "npu_smi"),)
        assert values["npu_fallback_exporter_collector_success", success] == 1
        wait_until(lambda: exporter.value("npu_host_cpu_utilization_ratio") is not None)


MISBEHAVIOUR = {
    "hangs": (Reply(hang=True), None),
    "ignores SIGTERM": (Reply(hang=True, ignore_term=True), None),
    "exits 187": (Reply("dcmi module initialize failed. ret is -8005\n", "", 187), "driver"),
    "is in use": (Reply(samples.text_of("error/8020_then_9005.txt"), "", 211), "busy"),
    "prints 100 MB": (Reply(flood_bytes=100 * 1024**2), "unparsable"),
    "prints nothing": (Reply(), "unparsable"),
    "lacks a library": (
        Reply("", samples.text_of("error/lib_drvdsmi_missing.txt"), 127),
        "missing",
    ),
}


@pytest.mark.parametrize("how", list(MISBEHAVIOUR))
def test_no_scrape_waits_and_the_sample_goes_and_comes_back(
    stand_in: StandIn, tmp_path: Path, how: str
) -> None:
    reply, reason = MISBEHAVIOUR[how]
    stand_in.reply(GOOD, NONE)
    with serving(*arguments(stand_in), pages=tmp_path) as exporter:
        wait_until(lambda: is_up(exporter))
        stand_in.reply({}, reply)
        if reason is not None:
            wait_until(lambda: failures(exporter, reason) > 0)
        wait_until(lambda: not is_up(exporter))
        # Stale after three intervals, whether the call has ended or not.
        wait_until(lambda: exporter.value("npu_power_watts", npu="0") is None)
        text, seconds = exporter.scrape()
        assert seconds < SLOW_SCRAPE_SECONDS
        assert "npu_smi_last_success_timestamp_seconds" in text
        assert "npu_info{" not in text
        stand_in.reply(GOOD, NONE)
        wait_until(lambda: is_up(exporter), 40, "it did not recover")
        assert exporter.value("npu_power_watts", npu="0") == 102.8


def test_a_child_that_holds_the_pipe_does_not_stop_the_samples(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.reply({**GOOD, "info": Reply(INFO, child_holds_pipe=True)}, NONE)
    with serving(*arguments(stand_in), pages=tmp_path) as exporter:
        wait_until(lambda: [call for _, call in stand_in.calls()].count("info") >= 3)
        wait_until(lambda: is_up(exporter))


def test_a_slow_npu_smi_never_runs_twice_at_once(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.reply({"info": Reply(INFO, delay_seconds=0.5)}, NONE)
    with serving(*arguments(stand_in), pages=tmp_path) as exporter:
        started = time.monotonic()
        wait_until(lambda: [call for _, call in stand_in.calls()].count("info") >= 4)
        assert time.monotonic() - started > 3 * 0.5
        assert is_up(exporter)


def test_it_stops_at_once_while_npu_smi_hangs(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.reply({}, Reply(hang=True, ignore_term=True))
    with serving(*arguments(stand_in), pages=tmp_path) as exporter:
        wait_until(lambda: bool(stand_in.calls()))
        started = time.monotonic()
        exporter.process.terminate()
        assert exporter.process.wait(10) == 0
        assert time.monotonic() - started < 3


def test_npu_smi_may_come_later(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.reply(GOOD, NONE)
    away = stand_in.path.rename(tmp_path / "away")
    with serving(*arguments(stand_in), pages=tmp_path) as exporter:
        wait_until(lambda: failures(exporter, "missing") > 0)
        away.rename(stand_in.path)
        wait_until(lambda: is_up(exporter))


def test_without_npu_smi_there_are_no_device_metrics(tmp_path: Path) -> None:
    with serving("--no-npu-smi", pages=tmp_path) as exporter:
        text, _ = exporter.scrape()
        assert "npu_smi" not in text
        assert "npu_fallback_processes 0.0" in text


@pytest.mark.parametrize(
    "flags",
    [
        ("--npu-smi-interval", "0"),
        ("--npu-smi-interval", "nan"),
        ("--npu-smi-interval", "soon"),
        ("--npu-smi", "/x", "--no-npu-smi"),
    ],
)
def test_flags_that_make_no_sense_are_a_usage_error(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["serve", *flags])
    except SystemExit as error:
        status = int(error.code or 0)
    assert status == 2
    assert "Traceback" not in capsys.readouterr().err
