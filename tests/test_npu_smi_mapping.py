"""Which chip a line of npu-smi means, and when it contradicts a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from npu_fallback_exporter.npu_smi.figures import ChipFigures, ChipKey
from npu_fallback_exporter.npu_smi.mapping import (
    PageClaim,
    contradictions,
    device_nodes,
    npu_labels,
)
from npu_fallback_exporter.npu_smi.parser import parse_id_map, parse_info
from tests.support import npu_smi_samples as samples


def chips(name: str) -> tuple[ChipFigures, ...]:
    return parse_info(samples.text_of(f"info/{name}")).chips


def labels(name: str, map_name: str | None, nodes: set[int]) -> list[str]:
    id_map = None if map_name is None else parse_id_map(samples.text_of(f"map/{map_name}"))
    return list(npu_labels(chips(name), id_map, frozenset(nodes)).values())


def test_two_dies_of_a_card_have_the_physical_ids_of_the_table() -> None:
    assert labels("910_93_25.2.0_A3_mixed-procs.txt", None, set()) == ["0", "1", "2", "3"]
    assert labels("910_93_26.0.rc2_A3_proc-part.txt", None, {3, 4}) == ["15"]


def test_a_container_with_one_card_shows_the_number_of_the_host() -> None:
    assert labels("910b4_25.5.2_npu5_container.txt", None, {5}) == ["5"]
    assert labels("910b4_25.5.2_npu5_container.txt", None, set()) == ["5"]


def test_the_logical_id_of_a_container_is_not_taken_for_the_chip() -> None:
    text = samples.text_of("info/910b4_25.5.2_npu5_container.txt").replace("| 5 ", "| 4 ")
    id_map = parse_id_map(samples.text_of("map/m_container_npu4.txt"))
    found = npu_labels(parse_info(text).chips, id_map, frozenset({4}))
    assert list(found.values()) == ["4"]


def test_cards_of_a_server_have_their_own_numbers() -> None:
    expected = [str(card) for card in range(8)]
    for map_name in (None, "m_910a_6.0.RC1_doc.txt"):
        for nodes in (set[int](), set(range(8))):
            assert labels("910b3_23.0.7_8cards_idle.txt", map_name, nodes) == expected


def test_two_of_eight_cards_keep_their_numbers() -> None:
    for nodes in (set[int](), {0, 5}, set(range(8))):
        assert labels("910b3_25.5.1_2of8_one-proc.txt", None, nodes) == ["0", "5"]


def test_a_slot_number_is_not_taken_for_the_chip() -> None:
    assert labels("310p3_23.0.0_npu24_noproc.txt", None, {0}) == ["0"]
    assert labels("310_20.2.0_doc_npu215.txt", None, {0, 1, 2, 3}) == ["0", "1", "2", "3"]


def test_cards_with_several_chips_are_counted_through_in_the_order_of_the_nodes() -> None:
    sixteen = [str(number) for number in range(16)]
    assert labels("310_21.0.3.1_4cards_16chips.txt", None, set(range(16))) == sixteen
    assert labels("310_20.2.0_doc_npu215.txt", None, {8, 9, 10, 11}) == ["8", "9", "10", "11"]


def test_logical_ids_that_are_the_node_numbers_stay() -> None:
    assert labels("310_21.0.4_doc_hugepages.txt", None, {3, 4, 5, 6}) == ["3", "4", "5", "6"]


@pytest.mark.parametrize("nodes", [{0}, {0, 1, 2}, {7, 8, 9, 10, 11}])
def test_nodes_that_do_not_count_the_chips_decide_nothing(nodes: set[int]) -> None:
    found = labels("310_20.2.0_doc_npu215.txt", None, nodes)
    assert found == [f"card-215-chip-{chip}" for chip in range(4)]


def test_a_card_whose_node_is_not_there_is_undecided() -> None:
    assert labels("910b4_25.5.2_npu5_container.txt", None, {1, 2}) == ["card-5-chip-0"]


def test_physical_ids_of_the_map_decide() -> None:
    id_map = parse_id_map("NPU ID  Slot ID  Chip ID  Chip Phy-ID  Chip Name\n0 3 0 6 Ascend950\n")
    found = npu_labels(chips("950pr_25.7.rc1.6_one-card.txt"), id_map, frozenset())
    assert found == {ChipKey(0, None): "6"}


def test_two_chips_never_share_a_label() -> None:
    (first, second) = chips("910b3_25.5.1_2of8_one-proc.txt")
    id_map = parse_id_map(
        "NPU ID  Chip ID  Chip Logic ID  Chip Phy-ID  Chip Name\n0 0 0 5 A\n5 0 1 5 A\n"
    )
    found = npu_labels((first, second), id_map, frozenset())
    assert list(found.values()) == ["card-0-chip-0", "card-5-chip-0"]


def test_device_nodes_are_read_by_their_names(tmp_path: Path) -> None:
    for name in ("davinci0", "davinci12", "davinci_manager", "davinci", "xdavinci3", "davinci4x"):
        (tmp_path / name).touch()
    assert device_nodes(tmp_path) == {0, 12}
    assert device_nodes(tmp_path / "none") == frozenset()


LABELS = {ChipKey(0, 0): "0", ChipKey(4, 0): "4"}


def test_agreement_is_silent() -> None:
    claims = [PageClaim("4", 77), PageClaim("0"), PageClaim("logical-3", 78)]
    on_chip = {77: frozenset({ChipKey(4, 0)}), 78: frozenset({ChipKey(0, 0)})}
    assert contradictions(claims, LABELS, on_chip) == ()


def test_a_page_on_a_chip_that_npu_smi_does_not_list_is_a_contradiction() -> None:
    assert contradictions([PageClaim("7")], LABELS, {}) == (
        "a page works on npu 7, npu-smi lists only 0, 4",
    )


def test_a_process_that_npu_smi_shows_on_another_chip_is_a_contradiction() -> None:
    on_chip = {77: frozenset({ChipKey(0, 0)})}
    assert contradictions([PageClaim("4", 77)], LABELS, on_chip) == (
        "process 77 is on npu 0, its page says 4",
    )


def test_undecided_chips_contradict_nothing() -> None:
    undecided = {ChipKey(215, 0): "card-215-chip-0"}
    on_chip = {77: frozenset({ChipKey(215, 0)})}
    assert contradictions([PageClaim("7", 77)], undecided, on_chip) == ()
