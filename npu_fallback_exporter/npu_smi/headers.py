"""Header cells of the plain table, and what they say about the rows below them.

A layout is known by the words of its header cells alone. Where a text comes
without its header (cut, or copied in part), the shape of a row still names the
layout, because no two of them share one: see ``IDENTITY_BY_SHAPE``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9 \-]*?\([^)]*\)")

#: Words of the first cell that stand for one id each.
CARD_WORDS = ("NPU ID", "NPU")
CHIP_WORD = "Chip"
PHYSICAL_WORD = "Phy-ID"
LOGIC_WORD = "Device"


@dataclass(frozen=True)
class Label:
    """One column of figures: its words, and where it starts in its cell."""

    words: str
    offset: int

    @property
    def kind(self) -> str:
        """``pair`` for ``used / total`` columns, ``scalar`` for all others."""
        return "pair" if "-Usage(" in self.words else "scalar"


@dataclass(frozen=True)
class Header:
    """One header line of the chip table.

    Args:
        cells: number of cells of the line.
        anchor: index of the cell ``Health`` (first line) or ``Bus-Id`` (second).
        ids: the words of the cells before the anchor, in order, one per id.
        labels: the columns of the cell after the anchor.
        width: length of that cell.
    """

    cells: int
    anchor: int
    ids: tuple[str, ...]
    labels: tuple[Label, ...]
    width: int


def labels_of(cell: str) -> tuple[Label, ...]:
    """Find the columns of a header cell such as ``Power(W)    Temp(C)``."""
    return tuple(Label(m[0], m.start()) for m in _LABEL.finditer(cell))


def header_of(cells: list[str], anchor_word: str) -> Header | None:
    """Read a header line whose anchor cell is ``anchor_word``; None for any other line."""
    for index, cell in enumerate(cells):
        if cell.strip() != anchor_word:
            continue
        if index == 0 or index + 1 >= len(cells):
            return None
        ids: list[str] = []
        for before in cells[:index]:
            words = before.strip()
            # "NPU ID" is one word, "NPU     Name" and "Chip  Phy-ID" are two.
            ids.extend([words] if words == CARD_WORDS[0] else words.split())
        figures = cells[index + 1]
        return Header(len(cells), index, tuple(ids), labels_of(figures), len(figures))
    return None


def _labels(*words: str) -> tuple[Label, ...]:
    return tuple(Label(word, -1) for word in words)


#: First line of a row pair, by the kinds of its figures.
FIRST_BY_SHAPE: dict[tuple[str, ...], tuple[Label, ...]] = {
    ("scalar", "scalar"): _labels("Power(W)", "Temp(C)"),
    ("scalar", "scalar", "pair"): _labels("Power(W)", "Temp(C)", "Hugepages-Usage(page)"),
}

#: Second line, by (cells before the bus id, ids in them, kinds of the figures).
IDENTITY_BY_SHAPE: dict[
    tuple[int, int, tuple[str, ...]], tuple[tuple[str, ...], tuple[Label, ...]]
] = {
    (1, 2, ("scalar", "pair")): (
        (CHIP_WORD, LOGIC_WORD),
        _labels("AICore(%)", "Memory-Usage(MB)"),
    ),
    (1, 1, ("scalar", "pair", "pair")): (
        (CHIP_WORD,),
        _labels("AICore(%)", "Memory-Usage(MB)", "HBM-Usage(MB)"),
    ),
    (1, 2, ("scalar", "pair", "pair")): (
        (CHIP_WORD, PHYSICAL_WORD),
        _labels("AICore(%)", "Memory-Usage(MB)", "HBM-Usage(MB)"),
    ),
    (2, 0, ("scalar", "pair", "pair")): (
        (),
        _labels("NPU Util(%)", "Memory-Usage(MB)", "HBM-Usage(MB)"),
    ),
}
