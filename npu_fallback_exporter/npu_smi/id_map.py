"""The table of ``npu-smi info -m``: cards, chips and their ids, in three layouts."""

from __future__ import annotations

import re

from npu_fallback_exporter.npu_smi.figures import ChipKey, IdMap, MapRow
from npu_fallback_exporter.npu_smi.text import integer, is_absent, lines_of

_CARD = "NPU ID"
_CHIP = "Chip ID"
_LOGIC = "Chip Logic ID"
_PHYSICAL = "Chip Phy-ID"
_NAME = "Chip Name"
_COLUMNS = re.compile(r"NPU ID|Slot ID|Chip Logic ID|Chip Phy-ID|Chip ID|Chip Name")


def parse_id_map(text: str, *, ended: bool = True) -> IdMap:
    """Read ``-m``. The columns are taken by the words of the header.

    Args:
        text: output of ``npu-smi info -m``.
        ended: the text ends where the tool ended; see ``text.lines_of``.

    Returns:
        One row per compute chip; management controllers (no logical or physical
        id) are left out. Never raises.
    """
    columns: list[str] | None = None
    rows: dict[ChipKey, MapRow] = {}
    problems: dict[str, None] = {}
    for line in lines_of(text, ended=ended):
        header = _columns_of(line)
        if header is not None:
            columns = header
        elif columns is not None:
            words = line.split(None, len(columns) - 1)
            if not words or integer(words[0]) is None:
                continue
            row = _row_of(columns, words)
            if row is None:
                problems["a row of the map is not readable"] = None
            elif row.logic_id is not None or row.physical_id is not None:
                rows[row.key] = row
    if not rows:
        problems["no chip found" if columns else "no map found"] = None
    return IdMap(tuple(rows.values()), tuple(problems))


def _columns_of(line: str) -> list[str] | None:
    """Name the columns if the line is a header whose columns are all known."""
    columns = _COLUMNS.findall(line)
    if not {_CARD, _CHIP, _NAME} <= set(columns) or _COLUMNS.sub("", line).strip():
        return None
    # The name is the last column: it may hold blanks.
    return columns if columns[-1] == _NAME and len(set(columns)) == len(columns) else None


def _row_of(columns: list[str], words: list[str]) -> MapRow | None:
    # A name may be missing; ids may not.
    if len(words) < len(columns) - 1:
        return None
    by_column = dict(zip(columns, words, strict=False))
    ids: dict[str, int | None] = {}
    for column in columns[:-1]:
        word = by_column[column]
        ids[column] = integer(word)
        if ids[column] is None and not is_absent(word):
            return None
    card, chip = ids[_CARD], ids[_CHIP]
    if card is None or chip is None:
        return None
    return MapRow(
        key=ChipKey(card, chip),
        name=by_column.get(_NAME, "").strip(),
        logic_id=ids.get(_LOGIC),
        physical_id=ids.get(_PHYSICAL),
    )
