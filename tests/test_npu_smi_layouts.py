"""What the readers of npu-smi's layouts promise, one by one."""

from __future__ import annotations

import time

import pytest

from npu_fallback_exporter.npu_smi.figures import ChipKey, Health, Usage
from npu_fallback_exporter.npu_smi.parser import (
    FailureReason,
    diagnose,
    parse_common,
    parse_id_map,
    parse_info,
    parse_usages,
    parse_watch,
)
from tests.support import npu_smi_samples as samples

HEADER_910 = (
    "| NPU   Name                | Health        | Power(W)    Temp(C)           "
    "Hugepages-Usage(page)|\n"
    "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  "
    "HBM-Usage(MB)        |\n"
)


def info_910(first: str, second: str) -> str:
    return f"{HEADER_910}| 3     910B4               | OK            | {first}|\n| {second}|\n"


def test_a_zero_power_is_a_failed_query_and_absent() -> None:
    (chip,) = parse_info(samples.text_of("info/310b4_23.0.0_alarm_58C.txt")).chips
    assert chip.health is Health.ALARM
    assert chip.power_watts is None
    assert (chip.temperature_celsius, chip.aicore_percent) == (58.0, 0.0)


def test_a_row_of_zeroes_gives_no_utilization() -> None:
    text = info_910(
        "0.0         0                 0    / 0             ",
        "0                         | 0000:C1:00.0  | 0           0    / 0          0    / 32768  ",
    )
    (chip,) = parse_info(text).chips
    assert chip.aicore_percent is None
    assert chip.temperature_celsius is None


def test_a_memory_of_total_zero_is_absent() -> None:
    (chip,) = parse_info(samples.text_of("info/910b4_25.5.2_npu5_container.txt")).chips
    assert chip.ddr_mib is None
    assert chip.hbm_mib == Usage(2922, 32768)


def test_a_memory_whose_use_is_unknown_keeps_its_total() -> None:
    text = samples.text_of("info/310b1_23.0.rc3_atlas200i.txt").replace(
        "3841 / 11577", "NA / 11577"
    )
    (chip,) = parse_info(text).chips
    assert chip.ddr_mib == Usage(None, 11577)


def test_columns_are_taken_by_their_words_when_they_change_places() -> None:
    text = (
        "| NPU   Name  | Health | Temp(C)    Power(W) |\n"
        "| Chip        | Bus-Id | HBM-Usage(MB)   AICore(%)  Memory-Usage(MB) |\n"
        "| 0     910X  | OK     | 44         99.5     |\n"
        "| 0           | NA     | 10 / 20         7          1 / 2            |\n"
    )
    (chip,) = parse_info(text).chips
    assert (chip.temperature_celsius, chip.power_watts, chip.aicore_percent) == (44.0, 99.5, 7.0)
    assert (chip.hbm_mib, chip.ddr_mib) == (Usage(10, 20), Usage(1, 2))


def test_an_unknown_column_is_passed_over() -> None:
    text = (
        "| NPU   Name  | Health | Fan(rpm)  Power(W)  Temp(C) |\n"
        "| Chip        | Bus-Id | AICore(%) SRAM-Usage(KB) HBM-Usage(MB) |\n"
        "| 0     910X  | OK     | 1200      99.5      44      |\n"
        "| 0           | NA     | 7         5 / 6          10 / 20       |\n"
    )
    (chip,) = parse_info(text).chips
    assert (chip.temperature_celsius, chip.power_watts) == (44.0, 99.5)
    assert chip.hbm_mib == Usage(10, 20)


def test_an_empty_value_leaves_its_neighbours_in_place() -> None:
    text = info_910(
        "            37                0    / 0             ",
        "0                         | 0000:C1:00.0  |             0    / 0          2922 / 32768   ",
    )
    (chip,) = parse_info(text).chips
    assert chip.power_watts is None
    assert chip.temperature_celsius == 37.0
    assert chip.aicore_percent is None


def test_a_value_that_could_belong_to_two_columns_is_absent() -> None:
    text = info_910(
        "  37              0    / 0             ",
        "0                         | 0000:C1:00.0  | 5    2922 / 32768   ",
    )
    table = parse_info(text)
    (chip,) = table.chips
    assert chip.power_watts is None
    assert chip.temperature_celsius is None
    assert chip.hbm_mib is None
    assert "the figures of a row do not match the header" in table.problems


@pytest.mark.parametrize("word", ["4294967295", "-1", "101", "1２", "0x10", "7%"])
def test_a_utilization_that_is_no_percentage_is_absent(word: str) -> None:
    text = info_910(
        "99.5        37                0    / 0             ",
        f"0                         | 0000:C1:00.0  | {word:<11} 0    / 0          9    / 32768   ",
    )
    (chip,) = parse_info(text).chips
    assert chip.aicore_percent is None


def test_a_first_line_never_pairs_with_the_second_line_of_another_chip() -> None:
    lines = samples.text_of("info/910b3_23.0.7_8cards_idle.txt").split("\n")
    del lines[7]
    table = parse_info("\n".join(lines))
    assert [chip.key.card for chip in table.chips] == [1, 2, 3, 4, 5, 6, 7]
    assert "the second line of a chip is missing" in table.problems


def test_a_process_name_may_hold_bars() -> None:
    text = samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt")
    (process,) = parse_info(text.replace("VLLMEngineCore", "a | OK |b| 12 |")).processes
    assert process.name == "a | OK |b| 12 |"
    assert (process.pid, process.memory_mib) == (2290156, 56630)


def test_the_pid_in_the_container_is_told_apart() -> None:
    text = samples.text_of("info/910_93_26.0.rc2_A3_proc-part.txt")
    (process,) = parse_info(text.replace("| NA                      |", "| 17  |")).processes
    assert (process.pid, process.container_pid, process.memory_mib) == (632268, 17, 197)


def test_usages_take_the_chip_id_that_follows() -> None:
    text = (
        "NPU ID : 1\nChip Count : 2\n\n"
        "Aicpu Usage Rate(%) : 3\nChip ID : 0\n\n"
        "Aicpu Usage Rate(%) : 5\nChip ID : 1\n"
    )
    assert [(u.key, u.aicpu_percent) for u in parse_usages(text).chips] == [
        (ChipKey(1, 0), 3.0),
        (ChipKey(1, 1), 5.0),
    ]


@pytest.mark.parametrize("lost", ["Chip ID : 0\n", "Chip ID : 0\n\n"])
def test_usages_without_their_chip_id_do_not_run_into_the_next_chip(lost: str) -> None:
    text = (
        "NPU ID : 1\nChip Count : 2\n\n"
        "Aicore Usage Rate(%) : 9\nAicpu Usage Rate(%) : 3\nChip ID : 0\n\n"
        "Aicpu Usage Rate(%) : 5\nChip ID : 1\n"
    )
    parsed = parse_usages(text.replace(lost, ""))
    (usages,) = parsed.chips
    assert usages.key == ChipKey(1, 1)
    assert usages.aicore_percent is None
    assert parsed.problems


def test_figures_that_lost_their_chip_id_do_not_stay_for_the_next_chip() -> None:
    text = (
        "NPU ID : 1\nChip Count : 2\n\n"
        "Aicore Usage Rate(%) : 9\n\n"
        "Aicpu Usage Rate(%) : 5\nChip ID : 1\n"
    )
    (usages,) = parse_usages(text).chips
    assert (usages.aicpu_percent, usages.aicore_percent) == (5.0, None)


@pytest.mark.parametrize("kept", range(1, 6))
def test_a_row_that_is_not_closed_is_not_read(kept: int) -> None:
    whole = samples.text_of("info/910b2c_25.0.rc1.1_busy18_partial.txt")
    table = parse_info(whole[: whole.index("65536") + kept] + "\n")
    assert table.chips == ()
    assert "a row is cut" in table.problems


def test_the_controller_does_not_overwrite_the_chips_of_common() -> None:
    parsed = parse_common(samples.text_of("type/common_310p_doc_dual.txt"))
    assert [usages.temperature_celsius for usages in parsed.chips] == [60.0, 59.0]
    assert (parsed.mcu_temperature_celsius, parsed.card_power_watts) == (48.0, 45.2)


def test_a_rate_of_a_memory_that_is_not_there_is_absent() -> None:
    (usages,) = parse_usages(samples.text_of("type/usages_910b_25.5.1.txt")).chips
    assert usages.ddr_bandwidth_percent is None
    assert usages.hbm_bandwidth_percent == 0.0


def test_a_last_line_that_may_be_cut_is_not_read() -> None:
    text = "NPU ID : 7\nChip ID : 0\nAicore Usage Rate(%) : 7"
    (whole,) = parse_common(text + "0\n", ended=False).chips
    assert whole.aicore_percent == 70.0
    assert parse_common(text, ended=False).chips == ()


@pytest.mark.parametrize(
    "header",
    [
        "\tNPU ID   Chip ID   Chip Logic ID   Chip Phy-ID   Chip Name\n\t{0} {1} {2} {3} Ascend910",
        "NPU ID Chip ID Chip Logic ID Chip Phy-ID Chip Name\n{0} {1} {2} {3} Ascend910",
    ],
)
def test_a_map_may_have_a_column_of_physical_ids(header: str) -> None:
    (row,) = parse_id_map(header.format(2, 1, 5, 11) + "\n").rows
    assert (row.key, row.logic_id, row.physical_id) == (ChipKey(2, 1), 5, 11)


def test_the_map_of_the_950_has_slots_and_no_logical_ids() -> None:
    text = "\tNPU ID   Slot ID   Chip ID   Chip Phy-ID   Chip Name\n\t3 9 0 4 Ascend950\n"
    (row,) = parse_id_map(text).rows
    assert (row.key, row.logic_id, row.physical_id) == (ChipKey(3, 0), None, 4)


def test_a_watch_row_with_a_missing_value_is_left_out() -> None:
    text = samples.text_of("watch/watch_950_doc_i0.txt").replace("280.9", "")
    watch = parse_watch(text)
    assert [row.power_watts for row in watch.rows] == [280.8, 280.8]
    assert watch.problems


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        (187, FailureReason.DRIVER, -8005),
        (172, FailureReason.BUSY, -8020),
        (211, FailureReason.DRIVER, -9005),
        (190, FailureReason.PERMISSION, -8002),
        (127, FailureReason.MISSING, None),
        (126, FailureReason.PERMISSION, None),
        (1, FailureReason.UNPARSABLE, None),
        (-11, FailureReason.UNPARSABLE, None),
        (None, FailureReason.UNPARSABLE, None),
    ],
)
def test_an_exit_status_alone_names_the_reason(
    status: int | None, reason: FailureReason, code: int | None
) -> None:
    diagnosis = diagnose("", status)
    assert (diagnosis.reason, diagnosis.dcmi_code) == (reason, code)


def test_not_supported_is_told_from_failed() -> None:
    assert diagnose(samples.text_of("error/not_supported_template-info.txt"), 0).unsupported
    assert not diagnose(samples.text_of("error/8005_ret4.txt"), 187).unsupported


@pytest.mark.parametrize(
    "unit", ["|", "| ", "|OK|", "a" * 511 + "(\n", "1 / ", "\t", "| 0 | OK | 1 |\n"]
)
def test_a_quarter_megabyte_of_anything_is_read_in_bounded_time(unit: str) -> None:
    text = unit * (256 * 1024 // len(unit))
    started = time.process_time()
    for reader in (parse_info, parse_usages, parse_id_map, parse_watch):
        reader(text)
    diagnose(text, 0)
    assert time.process_time() - started < 10
