"""Tables as npu-smi prints them, made from figures that a test knows.

Written from the tool's own field widths, so that a reading can be compared with
the truth. The five layouts are those of ``docs/npu-smi.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from npu_fallback_exporter.npu_smi.figures import ChipFigures, ProcessFigures, Usage

LAYOUTS = ("310", "910", "a3", "26", "950")


@dataclass(frozen=True)
class Table:
    """A table, and the lines between which other output may stand."""

    layout: str
    chips: tuple[ChipFigures, ...]
    processes: tuple[ProcessFigures, ...] = ()
    version: str = "24.1.0"
    lines: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(_lines(self)))

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def _usage(usage: Usage | None, width: int) -> str:
    # From five digits on the blank before the bar is lost, as the tool loses it.
    used, total = (0, 0) if usage is None else (usage.used, usage.total)
    return f"{used:<5}/ {total}".ljust(width)


def _lines(table: Table) -> list[str]:
    wide = table.layout == "26"
    first = "NPU ID | Name            " if table.layout == "950" else "NPU   Name               "
    second = {
        "310": "Chip  Device              ",
        "910": "Chip                      ",
        "a3": "Chip  Phy-ID              ",
        "26": "Chip  Phy-ID              ",
        "950": "       |                 ",
    }[table.layout]
    scalar = 21 if wide else 12
    util = "NPU Util(%)" if table.layout == "950" else "AICore(%)"
    figures = f"{'Power(W)'.ljust(scalar)}{'Temp(C)'.ljust(scalar + 6)}Hugepages-Usage(page) "
    memory = f"{util.ljust(scalar)}{'Memory-Usage(MB)'.ljust(scalar + 6)}"
    memory += "" if table.layout == "310" else "HBM-Usage(MB)  "
    width = max(len(figures), len(memory))
    rule = f"+{'=' * 27}+{'=' * 15}+{'=' * (width + 1)}+"
    thin = rule.replace("=", "-")
    lines = [
        thin,
        f"| npu-smi {table.version}                   Version: {table.version}            |",
        thin,
        f"| {first} | Health        | {figures.ljust(width)}|",
        f"| {second}| Bus-Id        | {memory.ljust(width)}|",
        rule,
    ]
    for chip in table.chips:
        lines += [*_chip_lines(table.layout, chip, scalar, width), rule]
    if table.processes:
        lines += [thin, *_process_lines(table), rule]
    return lines


def _chip_lines(layout: str, chip: ChipFigures, scalar: int, width: int) -> list[str]:
    power = "-" if chip.power_watts is None else f"{chip.power_watts:.1f}"
    temperature = "NA" if chip.temperature_celsius is None else f"{chip.temperature_celsius:.0f}"
    util = chip.npu_percent if layout == "950" else chip.aicore_percent
    figures = power.ljust(scalar) + temperature.ljust(scalar + 6) + _usage(chip.hugepages, 20)
    memory = ("NA" if util is None else f"{util:.0f}").ljust(scalar)
    memory += _usage(chip.ddr_mib, scalar + 6)
    memory += "" if layout == "310" else _usage(chip.hbm_mib, 15)
    if layout == "950":
        before, ids = f"{chip.key.card:<6} | {chip.name:<16}", "       |                 "
    else:
        before = f"{chip.key.card:<5} {chip.name:<19}"
        extra = {"310": chip.logic_id, "a3": chip.physical_id, "26": chip.physical_id}.get(layout)
        ids = f"{chip.key.chip:<5} {'' if extra is None else extra:<20}"
    return [
        f"| {before} | {chip.health.value:<13} | {figures.ljust(width)}|",
        f"| {ids}| {chip.bus_id or 'NA':<13} | {memory.ljust(width)}|",
    ]


def _process_lines(table: Table) -> list[str]:
    with_pid = table.layout == "26"
    ids = "NPU ID" if table.layout == "950" else "NPU     Chip"
    last = "| Process memory(MB)    | Process id in container |"
    lines = [
        f"| {ids:<26}| Process id    | Process name       "
        + (last if with_pid else "| Process memory(MB)      |")
    ]
    for process in table.processes:
        chip = "" if process.key.chip is None else process.key.chip
        row = f"| {process.key.card:<7} {chip:<18}| {process.pid:<13} | {process.name:<18} "
        row += f"| {process.memory_mib:<21} |"
        if with_pid:
            inside = "NA" if process.container_pid is None else process.container_pid
            row += f" {inside:<23} |"
        lines.append(row)
    return lines
