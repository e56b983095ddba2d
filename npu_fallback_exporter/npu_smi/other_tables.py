"""Smaller texts: processes of ``-t proc-mem``, virtual NPUs of ``-t info-vnpu``, the version."""

from __future__ import annotations

import re

from npu_fallback_exporter.npu_smi.figures import (
    ChipKey,
    ProcessesText,
    ProcessFigures,
    VirtualNpu,
    VirtualNpus,
)
from npu_fallback_exporter.npu_smi.key_values import parse_fields
from npu_fallback_exporter.npu_smi.text import cells_of, decimal, integer, is_border, lines_of

_PROCESS = re.compile(
    r"\s*Process id:\s*([0-9]+)\s+Process name:(.*)Process memory\(MB\):\s*([0-9]+)\s*"
)
_ID_LINE = re.compile(r"\s*(NPU ID|Chip ID)\s*:\s*([0-9]+)\s*")
_TOTAL = re.compile(r"Total number of vnpu:\s*([0-9]+)\s*")
_FREE_TOTAL = re.compile(r"([0-9.]+|NA)/([0-9.]+|NA)")
_VNPU_COLUMNS = ("Vnpu ID", "Vgroup ID", "Container ID", "Status", "Template Name")


def parse_processes(text: str, *, ended: bool = True) -> ProcessesText:
    """Read ``-t proc-mem``: each chip's processes stand before its ``Chip ID``.

    Where the text does not name its card (it may be cut off) the keys have card
    -1, and the result's ``card`` is None.
    """
    card: int | None = None
    open_rows: list[tuple[int, str, int]] = []
    found: list[ProcessFigures] = []
    problems: dict[str, None] = {}
    chips = 0
    for line in lines_of(text, ended=ended):
        process = _PROCESS.fullmatch(line)
        if process is not None:
            pid, memory = integer(process[1]), integer(process[3])
            if pid is None or memory is None:
                problems["a process is not readable"] = None
            else:
                open_rows.append((pid, process[2].strip(), memory))
            continue
        id_line = _ID_LINE.fullmatch(line)
        if id_line is None:
            continue
        number = integer(id_line[2])
        if id_line[1] == "NPU ID":
            card = number
            if open_rows:
                problems["processes stand without the id of their chip"] = None
                open_rows = []
            continue
        chips += 1
        if number is not None:
            key = ChipKey(-1 if card is None else card, number)
            found.extend(ProcessFigures(key, pid, name, mib) for pid, name, mib in open_rows)
        open_rows = []
    if open_rows:
        problems["processes stand without the id of their chip"] = None
    if not chips:
        problems["no chip found"] = None
    return ProcessesText(card, tuple(found), tuple(problems))


def parse_virtual_npus(text: str, *, ended: bool = True) -> VirtualNpus:
    """Read ``-t info-vnpu``: the virtual NPUs, and the free parts of the chip where shown."""
    npus: dict[int, VirtualNpu] = {}
    resources: dict[str, tuple[float, float]] = {}
    total: int | None = None
    columns: list[str] | None = None
    names: list[str] = []
    problems: dict[str, None] = {}
    for line in lines_of(text, ended=ended):
        if is_border(line):
            continue
        cells = cells_of(line)
        if cells is None:
            continue
        words = [cell.strip() for cell in cells]
        if len(words) == 1:
            counted = _TOTAL.fullmatch(words[0])
            if counted is not None:
                total = integer(counted[1])
            elif words[0].startswith("AICORE"):
                names = words[0].split()
            elif names:
                resources.update(_resources_of(names, words[0]))
        elif set(_VNPU_COLUMNS) <= set(words):
            columns = words
        elif columns is not None and len(words) == len(columns):
            row = _vnpu_of(dict(zip(columns, words, strict=True)))
            if row is not None:
                npus[row.vnpu_id] = row
            else:
                problems["a virtual NPU is not readable"] = None
    if total is None:
        problems["no number of virtual NPUs found"] = None
    elif total != len(npus):
        problems[f"{len(npus)} virtual NPUs found where the tool counts {total}"] = None
    return VirtualNpus(tuple(npus.values()), total, resources, tuple(problems))


def parse_version(text: str, *, ended: bool = True) -> str | None:
    """Read ``npu-smi -v``; None where the text has no version."""
    for field in parse_fields(text, ended=ended):
        if field.label == "npu-smi version" and field.value:
            return field.value
    return None


def _resources_of(names: list[str], row: str) -> dict[str, tuple[float, float]]:
    pairs = row.split()
    if len(pairs) != len(names):
        return {}
    found = {}
    for name, pair in zip(names, pairs, strict=True):
        match = _FREE_TOTAL.fullmatch(pair)
        free = decimal(match[1]) if match else None
        whole = decimal(match[2]) if match else None
        if free is not None and whole is not None:
            found[name] = (free, whole)
    return found


def _vnpu_of(row: dict[str, str]) -> VirtualNpu | None:
    vnpu_id = integer(row["Vnpu ID"])
    if vnpu_id is None:
        return None
    return VirtualNpu(
        vnpu_id=vnpu_id,
        template=row["Template Name"],
        status=row["Status"],
        container_id=row["Container ID"],
        vgroup_id=integer(row["Vgroup ID"]),
    )
