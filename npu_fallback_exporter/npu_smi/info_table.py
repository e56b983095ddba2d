"""The plain table of ``npu-smi info``: five layouts, one reader, chosen by header cells.

Each chip takes two lines. The first holds card, name and health, the second
chip ids, bus id and memory. A first line waits for its second; a rule between
them, or another first line, means that the second was lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from npu_fallback_exporter.npu_smi.figures import (
    ChipFigures,
    ChipKey,
    Health,
    InfoTable,
    ProcessFigures,
    Usage,
)
from npu_fallback_exporter.npu_smi.headers import (
    CHIP_WORD,
    FIRST_BY_SHAPE,
    IDENTITY_BY_SHAPE,
    LOGIC_WORD,
    PHYSICAL_WORD,
    Header,
    Label,
    header_of,
)
from npu_fallback_exporter.npu_smi.process_table import (
    ProcessHeader,
    process_header_of,
    process_of,
)
from npu_fallback_exporter.npu_smi.text import (
    cells_of,
    celsius,
    integer,
    is_absent,
    is_border,
    lines_of,
    percent,
    tokens_of,
    watts,
)

_VERSIONS = re.compile(r"npu-smi\s+(\S+)\s+Version:\s*(\S+)")
_BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]{1,2}")
_HEALTH = {health.value.lower(): health for health in Health}

Figures = dict[str, Usage | str | None]


def parse_info(text: str, *, ended: bool = True) -> InfoTable:
    """Read the plain table.

    Args:
        text: output of ``npu-smi info``, whole or in part, noise included.
        ended: the text ends where the tool ended; see ``text.lines_of``.

    Returns:
        What could be read, and in ``problems`` what could not. Never raises.
    """
    reader = _Reader()
    for line in lines_of(text, ended=ended):
        reader.feed(line)
    return reader.finish()


@dataclass(frozen=True)
class _First:
    """The first line of a row pair, waiting for its second."""

    card: int
    name: str
    health: Health
    figures: Figures
    cells: int


class _Reader:
    def __init__(self) -> None:
        self._first_header: Header | None = None
        self._second_header: Header | None = None
        self._process_header: ProcessHeader | None = None
        self._waiting: _First | None = None
        self._chips: dict[ChipKey, ChipFigures] = {}
        self._processes: dict[tuple[ChipKey, int], ProcessFigures] = {}
        self._versions: tuple[str, str] | None = None
        self._problems: dict[str, None] = {}

    def feed(self, line: str) -> None:
        if is_border(line):
            self._lose_second_line()
            return
        cells = cells_of(line)
        if cells is None:
            if line.lstrip().startswith("|"):
                self._problem("a row is cut")
            return
        if not self._feed_header(line, cells):
            self._feed_row(cells)

    def finish(self) -> InfoTable:
        self._lose_second_line()
        if not self._chips:
            self._problem("no chip table found")
        tool, driver = self._versions or (None, None)
        return InfoTable(
            chips=tuple(self._chips.values()),
            processes=tuple(self._processes.values()),
            tool_version=tool,
            driver_version=driver,
            problems=tuple(self._problems),
        )

    def _feed_header(self, line: str, cells: list[str]) -> bool:
        if cells[0].lstrip()[:1].isdigit():
            return False
        if len(cells) == 1:
            versions = _VERSIONS.search(line)
            if versions is not None:
                self._versions = (versions[1], versions[2])
            # "No running processes found in NPU 0" and other remarks.
            return True
        first = header_of(cells, "Health")
        if first is not None:
            # The second header line belongs to the first: a new table starts without one.
            self._first_header, self._second_header = first, None
            self._process_header = None
            self._lose_second_line()
            return True
        second = header_of(cells, "Bus-Id")
        if second is not None:
            self._second_header = second
            return True
        processes = process_header_of(cells)
        if processes is not None:
            self._process_header = processes
            self._lose_second_line()
            return True
        return False

    def _feed_row(self, cells: list[str]) -> None:
        if self._process_header is not None:
            process = process_of(cells, self._process_header)
            if process is None:
                self._problem("a row of the process table is not readable")
            else:
                self._processes[(process.key, process.pid)] = process
            return
        first = self._first_line(cells)
        if first is not None:
            self._lose_second_line()
            self._waiting = first
            return
        waiting, self._waiting = self._waiting, None
        chip = None if waiting is None else self._second_line(waiting, cells)
        if chip is None:
            self._problem("a row of the chip table is not readable")
        else:
            self._chips[chip.key] = chip

    def _first_line(self, cells: list[str]) -> _First | None:
        header = self._first_header
        anchor = len(cells) - 2 if header is None else header.anchor
        if anchor < 1 or (header is not None and len(cells) != header.cells):
            return None
        health = _HEALTH.get(cells[anchor].strip().lower())
        # Card and name share one cell, or have one each.
        words = cells[0].split(None, 1) if anchor == 1 else [c.strip() for c in cells[:anchor]]
        card = integer(words[0]) if words else None
        if health is None or card is None or anchor > 2:
            return None
        figures, known = self._figures(cells[anchor + 1], header)
        if figures is None:
            figures, known = self._figures_by_shape(cells[anchor + 1])
        if not known:
            self._problem("the figures of a row do not match the header")
        name = words[1].strip() if len(words) > 1 else ""
        return _First(card, name, health, figures or {}, len(cells))

    def _second_line(self, first: _First, cells: list[str]) -> ChipFigures | None:
        header = self._second_header
        anchor = len(cells) - 2 if header is None else header.anchor
        if len(cells) != first.cells or (header is not None and len(cells) != header.cells):
            return None
        bus = cells[anchor].strip()
        if _BUS_ID.fullmatch(bus) is None and not is_absent(bus):
            return None
        words = [word for cell in cells[:anchor] for word in cell.split()]
        ids = [integer(word) for word in words]
        if None in ids:
            return None
        figures, known = self._figures(cells[anchor + 1], header)
        if header is not None:
            names = header.ids
        else:
            names, figures = self._identity_by_shape(anchor, len(ids), cells[anchor + 1])
            known = figures is not None
            if figures is None:
                return None
        if len(ids) != len(names):
            return None
        if not known:
            self._problem("the figures of a row do not match the header")
        by_name = dict(zip(names, ids, strict=True))
        if CHIP_WORD in names and by_name[CHIP_WORD] is None:
            return None
        chip = ChipFigures(
            key=ChipKey(first.card, by_name.get(CHIP_WORD)),
            name=first.name,
            health=first.health,
            physical_id=by_name.get(PHYSICAL_WORD),
            logic_id=by_name.get(LOGIC_WORD),
            bus_id=None if is_absent(bus) else bus,
        )
        return _with_figures(chip, {**first.figures, **(figures or {})})

    def _figures(self, cell: str, header: Header | None) -> tuple[Figures | None, bool]:
        """Pair the figures of a cell with the columns of its header; second: all were paired."""
        if header is None:
            return None, False
        tokens = tokens_of(cell)
        labels = header.labels
        if [kind for _, kind, _ in tokens] == [label.kind for label in labels]:
            values = [value for _, _, value in tokens]
            return {label.words: value for label, value in zip(labels, values, strict=True)}, True
        # A value is missing. Those that start exactly under their label are still
        # certain: the tool prints both with the same field widths.
        if len(cell) != header.width:
            return {}, False
        by_offset = {(offset, kind): value for offset, kind, value in tokens}
        certain = {
            label.words: by_offset[(label.offset, label.kind)]
            for label in labels
            if (label.offset, label.kind) in by_offset
        }
        return certain, len(certain) == len(tokens)

    def _figures_by_shape(self, cell: str) -> tuple[Figures | None, bool]:
        tokens = tokens_of(cell)
        labels = FIRST_BY_SHAPE.get(tuple(kind for _, kind, _ in tokens))
        if labels is None:
            return None, False
        self._problem("a header is missing: columns are told by the shape of the row")
        return _paired(labels, [value for _, _, value in tokens]), True

    def _identity_by_shape(
        self, before: int, ids: int, cell: str
    ) -> tuple[tuple[str, ...], Figures | None]:
        tokens = tokens_of(cell)
        known = IDENTITY_BY_SHAPE.get((before, ids, tuple(kind for _, kind, _ in tokens)))
        if known is None:
            return (), None
        self._problem("a header is missing: columns are told by the shape of the row")
        names, labels = known
        return names, _paired(labels, [value for _, _, value in tokens])

    def _lose_second_line(self) -> None:
        if self._waiting is not None:
            self._waiting = None
            self._problem("the second line of a chip is missing")

    def _problem(self, words: str) -> None:
        self._problems[words] = None


def _paired(labels: tuple[Label, ...], values: list[Usage | str | None]) -> Figures:
    return {label.words: value for label, value in zip(labels, values, strict=True)}


def _with_figures(chip: ChipFigures, figures: Figures) -> ChipFigures:
    def word(label: str) -> str:
        value = figures.get(label)
        return value if isinstance(value, str) else ""

    def usage(label: str) -> Usage | None:
        value = figures.get(label)
        return value if isinstance(value, Usage) else None

    power = watts(word("Power(W)"))
    temperature = celsius(word("Temp(C)"))
    aicore = percent(word("AICore(%)"))
    if power is None and temperature == 0 and aicore == 0:
        # The tool ignores failed queries and prints the zeroed memory: no figure at all.
        temperature = aicore = None
    return replace(
        chip,
        power_watts=power,
        temperature_celsius=temperature,
        aicore_percent=aicore,
        npu_percent=percent(word("NPU Util(%)")),
        ddr_mib=usage("Memory-Usage(MB)"),
        hbm_mib=usage("HBM-Usage(MB)"),
        hugepages=usage("Hugepages-Usage(page)"),
    )
