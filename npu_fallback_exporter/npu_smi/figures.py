"""What npu-smi prints, as types. Every unit is in the name; ``None`` is "not given".

Sizes are in MiB because the tool prints "MB" for 1024 * 1024 bytes (a 64 GiB
stack shows as 65536); the collector turns them into bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

MIB = 1024 * 1024
#: One huge page as the tool counts them.
HUGEPAGE_BYTES = 2 * MIB


class Health(str, Enum):
    """The five words that the tool prints for the health of a chip."""

    OK = "OK"
    WARNING = "Warning"
    ALARM = "Alarm"
    CRITICAL = "Critical"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Usage:
    """A pair ``used / total``. ``used`` may be missing while ``total`` is known."""

    used: int | None
    total: int


@dataclass(frozen=True, order=True)
class ChipKey:
    """How npu-smi addresses a chip: card (its "NPU ID") and chip on the card.

    ``chip`` is None in the layout of the 950, which numbers no chips.
    """

    card: int
    chip: int | None


@dataclass(frozen=True)
class ChipFigures:
    """One chip of the plain table (``npu-smi info``)."""

    key: ChipKey
    name: str
    health: Health
    #: Physical id, only where the layout prints a ``Phy-ID`` column.
    physical_id: int | None = None
    #: Logical id of the driver (column ``Device``); in a container it counts from 0.
    logic_id: int | None = None
    bus_id: str | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    aicore_percent: float | None = None
    #: The 950 prints ``NPU Util(%)`` where the others print ``AICore(%)``.
    npu_percent: float | None = None
    ddr_mib: Usage | None = None
    hbm_mib: Usage | None = None
    hugepages: Usage | None = None


@dataclass(frozen=True)
class ProcessFigures:
    """One process on a chip. Names are cut at 15 characters by the kernel, and may be empty."""

    key: ChipKey
    pid: int
    name: str
    memory_mib: int
    #: The pid inside its container, where the table has that column and the tool knows it.
    container_pid: int | None = None


@dataclass(frozen=True)
class InfoTable:
    """The plain table. ``problems`` says in words what could not be read."""

    chips: tuple[ChipFigures, ...] = ()
    processes: tuple[ProcessFigures, ...] = ()
    tool_version: str | None = None
    driver_version: str | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChipUsages:
    """One chip of ``-t usages`` or ``-t common``."""

    key: ChipKey
    aicore_percent: float | None = None
    aivector_percent: float | None = None
    aicube_percent: float | None = None
    aicpu_percent: float | None = None
    ctrlcpu_percent: float | None = None
    npu_percent: float | None = None
    ddr_percent: float | None = None
    hbm_percent: float | None = None
    ddr_bandwidth_percent: float | None = None
    hbm_bandwidth_percent: float | None = None
    ddr_capacity_mib: float | None = None
    hbm_capacity_mib: float | None = None
    hugepages_total: float | None = None
    hugepages_percent: float | None = None
    aicore_count: float | None = None
    aicore_mhz: float | None = None
    aicore_rated_mhz: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None


@dataclass(frozen=True)
class UsagesText:
    """All chips of one ``-t usages`` or ``-t common`` call."""

    chips: tuple[ChipUsages, ...] = ()
    card: int | None = None
    chip_count: int | None = None
    #: Figures of the whole card: power in the ``mcu`` block of a card with several chips.
    card_power_watts: float | None = None
    #: Temperature of the management controller, not of a chip.
    mcu_temperature_celsius: float | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class MapRow:
    """One compute chip of ``-m``; management controllers are left out."""

    key: ChipKey
    name: str
    logic_id: int | None = None
    physical_id: int | None = None


@dataclass(frozen=True)
class IdMap:
    """The table of ``npu-smi info -m``."""

    rows: tuple[MapRow, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class CardEntry:
    """One card of ``-l``."""

    card: int
    chip_count: int | None = None
    product_name: str | None = None


@dataclass(frozen=True)
class CardList:
    """The list of ``npu-smi info -l``."""

    cards: tuple[CardEntry, ...] = ()
    total: int | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchRow:
    """One line of ``npu-smi info watch``.

    Whether the memory columns mean DDR or HBM depends on the chip and is not
    printed, so they are kept apart from the figures that name their memory.
    """

    key: ChipKey
    power_watts: float | None = None
    temperature_celsius: float | None = None
    aicore_percent: float | None = None
    aicpu_percent: float | None = None
    ctrlcpu_percent: float | None = None
    memory_percent: float | None = None
    memory_bandwidth_percent: float | None = None
    npu_percent: float | None = None
    aicube_percent: float | None = None


@dataclass(frozen=True)
class WatchText:
    """The rows of ``npu-smi info watch``, oldest first."""

    rows: tuple[WatchRow, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProcessesText:
    """The processes of ``-t proc-mem``; the card is None where the text does not name it."""

    card: int | None = None
    processes: tuple[ProcessFigures, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class VirtualNpu:
    """One virtual NPU of ``-t info-vnpu``."""

    vnpu_id: int
    template: str
    status: str
    container_id: str
    vgroup_id: int | None = None


@dataclass(frozen=True)
class VirtualNpus:
    """The virtual NPUs of a chip, and what is left of it as ``free / total``."""

    npus: tuple[VirtualNpu, ...] = ()
    total: int | None = None
    resources: dict[str, tuple[float, float]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
