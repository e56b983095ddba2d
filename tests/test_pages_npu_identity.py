"""Which chip a logical NPU index is."""

from __future__ import annotations

import pytest

from npu_fallback_exporter.pages.model import ChipEvidence
from npu_fallback_exporter.pages.npu_identity import NpuLabels


def _labels(davinci: tuple[int, ...], visible: str | None = None, lost: bool = False) -> NpuLabels:
    return NpuLabels(ChipEvidence(davinci, visible, lost))


@pytest.mark.parametrize(
    ("davinci", "visible", "expected"),
    [
        ((0, 1, 2, 3), None, ["0", "1", "2", "3"]),
        ((4, 5), None, ["4", "5"]),
        ((4, 5), "1", ["5"]),
        ((0, 1, 2, 3, 4, 5, 6, 7), "4,5", ["4", "5"]),
        ((0, 1, 2, 3), "3,1", ["3", "1"]),
        ((2, 3, 6, 7), "1,3", ["3", "7"]),
    ],
)
def test_a_plain_list_chooses_among_the_devices_that_are_there(
    davinci: tuple[int, ...], visible: str | None, expected: list[str]
) -> None:
    labels = _labels(davinci, visible)
    assert [labels.label(index) for index in range(len(expected))] == expected


@pytest.mark.parametrize(
    "visible",
    ["", "0,0", "8", "0,8", "0-3", "0, 1", " 0", "0,", ",0", "-1", "0,-1", "a", "0x1", "٣", "0;1"],
)
def test_a_list_that_is_not_plain_decides_nothing(visible: str) -> None:
    assert _labels(tuple(range(8)), visible).label(0) == "logical-0"


def test_without_device_numbers_nothing_is_decided() -> None:
    assert _labels((), "0").label(0) == "logical-0"


def test_a_list_too_long_for_the_page_decides_nothing() -> None:
    assert _labels((0, 1), None, lost=True).label(1) == "logical-1"


def test_an_index_beyond_the_list_is_logical() -> None:
    labels = _labels((4, 5), "1")
    assert [labels.label(0), labels.label(1)] == ["5", "logical-1"]


def test_series_are_made_for_every_chip_that_is_decided() -> None:
    assert _labels((4, 5)).to_create(()) == ("4", "5")


def test_series_are_made_for_the_first_index_when_nothing_is_decided() -> None:
    assert _labels(()).to_create(()) == ("logical-0",)


def test_series_are_made_for_every_index_that_was_touched() -> None:
    assert _labels((4, 5), "1").to_create((0, 7)) == ("5", "logical-7")
