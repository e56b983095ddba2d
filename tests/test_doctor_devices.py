"""``doctor``: npu-smi, device nodes, visible devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_fallback_exporter.doctor import devices

from .support.doctor_scene import TABLE_910B3, judged, machine, one
from .support.npu_smi_samples import text_of
from .support.npu_smi_standin import Reply, StandIn


def nodes(folder: Path, count: int) -> None:
    (folder / "dev").mkdir()
    for number in range(count):
        (folder / "dev" / f"davinci{number}").touch()


def test_an_npu_smi_that_answers_is_ok_with_driver_and_chips(tmp_path: Path) -> None:
    nodes(tmp_path, 8)
    StandIn(tmp_path).reply({"info": Reply(text_of(TABLE_910B3))})
    found = devices.check(machine(tmp_path))
    assert one(found, "npu-smi").text.startswith("8 chips, driver 23.0.7")
    assert one(found, "chips").text == "npu 0, 1, 2, 3, 4, 5, 6, 7"
    assert {finding.status.value for finding in found} == {"ok"}


def test_a_missing_npu_smi_is_a_warning_with_the_next_step(tmp_path: Path) -> None:
    status, step = judged(devices.check(machine(tmp_path)), "npu-smi")
    assert status == "warning"
    assert "--npu-smi" in step


def test_an_npu_smi_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    StandIn(tmp_path)
    found = one(devices.check(machine(tmp_path)), "npu-smi")
    assert found.status.value == "warning"
    assert "-8005" in found.text


def test_an_npu_smi_that_hangs_costs_its_deadline(tmp_path: Path) -> None:
    StandIn(tmp_path).reply({}, Reply(hang=True))
    found = one(devices.check(machine(tmp_path, npu_smi_seconds=0.5)), "npu-smi")
    assert "no answer within 0.5 s" in found.text


def test_chips_whose_number_is_not_known_are_named(tmp_path: Path) -> None:
    nodes(tmp_path, 1)
    StandIn(tmp_path).reply({"info": Reply(text_of("info/310_21.0.4_doc_hugepages.txt"))})
    found = one(devices.check(machine(tmp_path)), "chips")
    assert found.status.value == "warning"
    assert "card-" in found.text


def test_no_device_node_is_a_warning(tmp_path: Path) -> None:
    assert judged(devices.check(machine(tmp_path)), "device nodes")[0] == "warning"


@pytest.mark.parametrize(
    ("listed", "status", "text"),
    [
        ("1,0", "ok", "ASCEND_RT_VISIBLE_DEVICES=1,0: npu 1, 0"),
        ("0,9", "problem", "ASCEND_RT_VISIBLE_DEVICES='0,9' does not name devices of 0 to 1"),
        ("0, 1", "problem", "ASCEND_RT_VISIBLE_DEVICES='0, 1' does not name devices of 0 to 1"),
    ],
)
def test_the_visible_devices_are_mapped(
    listed: str, status: str, text: str, tmp_path: Path
) -> None:
    nodes(tmp_path, 2)
    there = machine(tmp_path, environ={"ASCEND_RT_VISIBLE_DEVICES": listed})
    found = one(devices.check(there), "visible devices")
    assert (found.status.value, found.text) == (status, text)


def test_visible_devices_without_any_device_are_a_warning(tmp_path: Path) -> None:
    there = machine(tmp_path, environ={"ASCEND_RT_VISIBLE_DEVICES": "0"})
    assert judged(devices.check(there), "visible devices")[0] == "warning"
