"""The verb ``demo``: everything at once, with real requests to real workers."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from npu_fallback_exporter.demo import device
from npu_fallback_exporter.demo.errors import DemoError
from npu_fallback_exporter.demo.scrape import OpRow, parse
from npu_fallback_exporter.report.units import size

DEMO = [sys.executable, "-m", "npu_fallback_exporter", "demo"]
DEADLINE_SECONDS = 280.0


def demo(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


@pytest.mark.slow
def test_two_workers_and_1000_requests_give_exactly_the_events_that_the_model_must_cause() -> None:
    done = demo("--requests", "1000")
    assert done.stderr == ""
    assert done.returncode == 0
    # Two tokens per request, so two forward passes; and each of two workers loads once.
    assert "must cause 2 (loading) + 2,000 (forward passes) = 2,002 events." in done.stdout
    assert "The scrape has 2,002, exactly as many." in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_demo_and_all_that_it_started(
    number: signal.Signals, status: int
) -> None:
    process = subprocess.Popen(
        [*DEMO, "--seconds", "3600"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(DEADLINE_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        assert any(line.startswith("Sending requests") for line in process.stdout)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, errors = process.communicate()
        assert (process.returncode, errors) == (status, "")
        assert len(children) == 3  # two workers and the exporter
        assert not any(child.is_running() for child in children)
    finally:
        watchdog.cancel()
        process.kill()


def test_a_wrong_flag_is_a_usage_error_in_one_line() -> None:
    done = demo("--requests", "0")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_without_a_device_the_next_step_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(device, "number_of_npus", lambda: 0)
    monkeypatch.setattr(device, "_CHECKOUT", tmp_path)
    with pytest.raises(DemoError, match=r"^there is no NPU .*: run this on a machine with an NPU"):
        device.find_device()


def test_the_simulation_stays_away_from_a_machine_with_an_npu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "number_of_npus", lambda: 8)
    found = device.find_device({"LD_LIBRARY_PATH": "/usr/local/Ascend/lib64"})
    assert (found.count, found.simulated) == (8, False)
    assert found.environ == {"LD_LIBRARY_PATH": "/usr/local/Ascend/lib64"}


def test_a_scrape_is_summed_over_npus_and_ranked_by_time() -> None:
    result = parse(
        """# TYPE npu_fallback_events_total counter
npu_fallback_events_total{op="aten::a",kind="dispatcher",npu="0"} 5
npu_fallback_events_total{op="aten::a",kind="dispatcher",npu="1"} 7
npu_fallback_events_total{op="aten::b",kind="dispatcher",npu="0"} 1
# TYPE npu_fallback_kind_events_total counter
npu_fallback_kind_events_total{kind="dispatcher",npu="0"} 6
npu_fallback_kind_events_total{kind="dispatcher",npu="1"} 7
npu_fallback_kind_events_total{kind="explicit_kernel",npu="0"} 0
# TYPE npu_fallback_transfer_bytes_total counter
npu_fallback_transfer_bytes_total{op="aten::a",kind="dispatcher",npu="0",direction="d2h"} 72
npu_fallback_transfer_bytes_total{op="aten::a",kind="dispatcher",npu="0",direction="h2d"} 24
# TYPE npu_fallback_duration_seconds histogram
npu_fallback_duration_seconds_bucket{op="aten::b",kind="dispatcher",le="+Inf"} 1
npu_fallback_duration_seconds_count{op="aten::b",kind="dispatcher"} 1
npu_fallback_duration_seconds_sum{op="aten::b",kind="dispatcher"} 2.5
npu_fallback_duration_seconds_bucket{op="aten::a",kind="dispatcher",le="+Inf"} 12
npu_fallback_duration_seconds_count{op="aten::a",kind="dispatcher"} 12
npu_fallback_duration_seconds_sum{op="aten::a",kind="dispatcher"} 0.5
"""
    )
    assert result.total == 13
    assert result.rows == (
        OpRow("aten::b", "dispatcher", events=1, seconds=2.5),
        OpRow("aten::a", "dispatcher", events=12, bytes_d2h=72, bytes_h2d=24, seconds=0.5),
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 30, "5.0 GiB")],
)
def test_bytes_are_told_in_binary_units(number: int, text: str) -> None:
    assert size(number) == text
