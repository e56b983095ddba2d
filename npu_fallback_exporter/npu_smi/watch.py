"""The scrolling table of ``npu-smi info watch``."""

from __future__ import annotations

import re
from collections.abc import Callable

from npu_fallback_exporter.npu_smi.figures import ChipKey, WatchRow, WatchText
from npu_fallback_exporter.npu_smi.text import celsius, integer, lines_of, percent, watts

_CARD = "NpuID(Idx)"
_CHIP = "ChipId(Idx)"
_LABEL = re.compile(r"[A-Za-z][A-Za-z ]*\([^)]*\)")
_FIELDS: dict[str, tuple[str, Callable[[str], float | None]]] = {
    "Pwr(W)": ("power_watts", watts),
    "Temp(C)": ("temperature_celsius", celsius),
    "AI Core(%)": ("aicore_percent", percent),
    "AI Cpu(%)": ("aicpu_percent", percent),
    "Ctrl Cpu(%)": ("ctrlcpu_percent", percent),
    "Memory(%)": ("memory_percent", percent),
    "Memory BW(%)": ("memory_bandwidth_percent", percent),
    "NPU Util(%)": ("npu_percent", percent),
    "AI Cube(%)": ("aicube_percent", percent),
}


def parse_watch(text: str, *, ended: bool = True) -> WatchText:
    """Read ``info watch``; columns that this reader does not know are passed over.

    Args:
        text: any number of headers and rows; a header may be followed by its
            rows on the same line.
        ended: the text ends where the tool ended; see ``text.lines_of``.

    Returns:
        The rows that have as many words as the header has columns. Never raises.
    """
    labels: list[str] = []
    rows: list[WatchRow] = []
    problems: dict[str, None] = {}
    for line in lines_of(text, ended=ended):
        found = list(_LABEL.finditer(line))
        if found and found[0][0] == _CARD:
            labels = [match[0] for match in found]
            line = line[found[-1].end() :]
        words = line.split()
        if not words or not labels or integer(words[0]) is None:
            continue
        if len(words) % len(labels):
            problems["a row has another number of values than the header"] = None
            continue
        for start in range(0, len(words), len(labels)):
            row = _row_of(dict(zip(labels, words[start : start + len(labels)], strict=True)))
            if row is None:
                problems["a row has no readable id"] = None
            else:
                rows.append(row)
    if not rows:
        problems["no row found"] = None
    return WatchText(tuple(rows), tuple(problems))


def _row_of(by_label: dict[str, str]) -> WatchRow | None:
    card = integer(by_label[_CARD])
    chip = integer(by_label[_CHIP]) if _CHIP in by_label else None
    if card is None or (_CHIP in by_label and chip is None):
        return None
    figures = {
        name: read(by_label[label]) for label, (name, read) in _FIELDS.items() if label in by_label
    }
    return WatchRow(ChipKey(card, chip), **figures)
