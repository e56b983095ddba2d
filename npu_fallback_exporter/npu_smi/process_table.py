"""The process table below the chips: four or five columns, with or without a chip id."""

from __future__ import annotations

from dataclasses import dataclass

from npu_fallback_exporter.npu_smi.figures import ChipKey, ProcessFigures
from npu_fallback_exporter.npu_smi.text import integer

_PID = "Process id"
_NAME = "Process name"
_MEMORY = "Process memory(MB)"
_CONTAINER_PID = "Process id in container"


@dataclass(frozen=True)
class ProcessHeader:
    """Where the columns are. Those after the name are counted from the right.

    A process may have a bar in its name, so the name is what is left between
    the columns before it and those after it.
    """

    has_chip: bool
    pid: int
    name: int
    memory_from_right: int
    container_pid_from_right: int | None
    cells: int


def process_header_of(cells: list[str]) -> ProcessHeader | None:
    """Read the header line of the process table; None for any other line."""
    words = [cell.strip() for cell in cells]
    if not {_PID, _NAME, _MEMORY} <= set(words) or not words[0].startswith("NPU"):
        return None
    return ProcessHeader(
        has_chip="Chip" in words[0].split(),
        pid=words.index(_PID),
        name=words.index(_NAME),
        memory_from_right=len(words) - words.index(_MEMORY),
        container_pid_from_right=(
            len(words) - words.index(_CONTAINER_PID) if _CONTAINER_PID in words else None
        ),
        cells=len(words),
    )


def process_of(cells: list[str], header: ProcessHeader) -> ProcessFigures | None:
    """Read a row of the process table; None where an id, the pid or the memory is not a number."""
    if len(cells) < header.cells or header.pid >= header.name:
        return None
    ids = [integer(word) for word in cells[0].split()]
    if len(ids) != (2 if header.has_chip else 1) or None in ids:
        return None
    pid = integer(cells[header.pid])
    memory = integer(cells[-header.memory_from_right])
    if pid is None or memory is None:
        return None
    after_name = header.cells - header.name - 1
    name = "|".join(cells[header.name : len(cells) - after_name]).strip()
    container_pid = None
    if header.container_pid_from_right is not None:
        container_pid = integer(cells[-header.container_pid_from_right])
    card = ids[0]
    assert card is not None  # noqa: S101 - told to mypy: no id is None here
    return ProcessFigures(
        key=ChipKey(card, ids[1] if header.has_chip else None),
        pid=pid,
        name=name,
        memory_mib=memory,
        container_pid=container_pid,
    )
