"""Lines ``label : value``: ``-t usages``, ``-t common``, ``-l``, and every other ``-t`` type.

The tool closes a chip's block with its ``Chip ID`` line in ``-t usages`` and
opens it with that line in ``-t common``. ``common`` ends with a block of the
management controller (``mcu``) that repeats labels of the chips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from npu_fallback_exporter.npu_smi.figures import (
    CardEntry,
    CardList,
    ChipKey,
    ChipUsages,
    UsagesText,
)
from npu_fallback_exporter.npu_smi.text import (
    celsius,
    decimal,
    integer,
    is_absent,
    lines_of,
    percent,
    watts,
)

#: Labels of ``-t usages`` and ``-t common``. What the chips call "Memory" is DDR;
#: two names stand for one thing where versions of the tool disagree.
_FIELDS: dict[str, tuple[str, Callable[[str], float | None]]] = {
    "Aicore Usage Rate(%)": ("aicore_percent", percent),
    "Aivector Usage Rate(%)": ("aivector_percent", percent),
    "Vectorcore Usage Rate(%)": ("aivector_percent", percent),
    "Aicube Usage Rate(%)": ("aicube_percent", percent),
    "Aicpu Usage Rate(%)": ("aicpu_percent", percent),
    "Ctrlcpu Usage Rate(%)": ("ctrlcpu_percent", percent),
    "NPU Utilization(%)": ("npu_percent", percent),
    "DDR Usage Rate(%)": ("ddr_percent", percent),
    "Memory Usage Rate(%)": ("ddr_percent", percent),
    "HBM Usage Rate(%)": ("hbm_percent", percent),
    "DDR Bandwidth Usage Rate(%)": ("ddr_bandwidth_percent", percent),
    "Memory Bandwidth Usage Rate(%)": ("ddr_bandwidth_percent", percent),
    "HBM Bandwidth Usage Rate(%)": ("hbm_bandwidth_percent", percent),
    "DDR Capacity(MB)": ("ddr_capacity_mib", decimal),
    "Memory Capacity(MB)": ("ddr_capacity_mib", decimal),
    "HBM Capacity(MB)": ("hbm_capacity_mib", decimal),
    "DDR Hugepages Total(page)": ("hugepages_total", decimal),
    "Hugepages Total(page)": ("hugepages_total", decimal),
    "DDR Hugepages Usage Rate(%)": ("hugepages_percent", percent),
    "Hugepages Usage Rate(%)": ("hugepages_percent", percent),
    "Aicore Count": ("aicore_count", decimal),
    "Aicore Freq(MHZ)": ("aicore_rated_mhz", decimal),
    "Aicore curFreq(MHZ)": ("aicore_mhz", decimal),
    "Temperature(C)": ("temperature_celsius", celsius),
    "NPU Real-time Power(W)": ("power_watts", watts),
}

#: A part that is not there has capacity 0; its rates are then no figures either.
_PARTS = {
    "ddr_capacity_mib": ("ddr_percent", "ddr_bandwidth_percent"),
    "hbm_capacity_mib": ("hbm_percent", "hbm_bandwidth_percent"),
    "hugepages_total": ("hugepages_percent",),
}
_COUNTS = ("aicore_count", "aicore_mhz", "aicore_rated_mhz")


@dataclass(frozen=True)
class Field:
    """One line ``label : value``."""

    label: str
    value: str


def parse_fields(text: str, *, ended: bool = True) -> tuple[Field, ...]:
    """Read the ``label : value`` lines of any ``-t`` type, in their order.

    This is the reading for types that have no figures here (``board``, ``ecc``,
    ``health``, ``power``, ``sensors``, ``temp``, ``volt``, ``phyid-remap``).
    """
    return tuple(_fields(text, ended=ended))


def parse_usages(text: str, *, ended: bool = True) -> UsagesText:
    """Read ``-t usages``: each chip's figures stand before its ``Chip ID``."""
    return _parse_blocks(text, ended=ended, id_closes=True)


def parse_common(text: str, *, ended: bool = True) -> UsagesText:
    """Read ``-t common``: each chip's figures stand after its ``Chip ID``."""
    return _parse_blocks(text, ended=ended, id_closes=False)


def parse_card_list(text: str, *, ended: bool = True) -> CardList:
    """Read ``-l``: the cards, and how many the tool says there are."""
    cards: dict[int, CardEntry] = {}
    total: int | None = None
    card: int | None = None
    for line in _fields(text, ended=ended):
        if line.label in ("Total Count", "Card Count"):
            total = integer(line.value)
        elif line.label == "NPU ID":
            card = integer(line.value)
            if card is not None:
                cards[card] = CardEntry(card)
        elif card is not None and line.label == "Chip Count":
            entry = cards[card]
            cards[card] = CardEntry(card, integer(line.value), entry.product_name)
        elif card is not None and line.label == "Product Name":
            entry = cards[card]
            name = None if is_absent(line.value) else line.value
            cards[card] = CardEntry(card, entry.chip_count, name)
    problems = []
    if not cards:
        problems.append("no card found")
    elif total is not None and total != len(cards):
        problems.append(f"{len(cards)} cards found where the tool counts {total}")
    return CardList(tuple(cards.values()), total, tuple(problems))


def _field_of(line: str) -> Field | None:
    label, colon, value = line.partition(":")
    label = label.strip()
    if not colon or not label[:1].isalpha() or "|" in label:
        return None
    return Field(label, value.strip())


def _fields(text: str, *, ended: bool) -> Iterator[Field]:
    for line in lines_of(text, ended=ended):
        field = _field_of(line)
        if field is not None:
            yield field


@dataclass
class _Blocks:
    """What was read so far; ``open`` has the figures of the block at hand, by label."""

    open: dict[str, float | None]
    chips: dict[ChipKey, ChipUsages]
    problems: dict[str, None]
    card: int | None = None
    chip_count: int | None = None
    chip: int | None = None
    in_mcu: bool = False
    #: The text numbers its chips; the 950 does not.
    numbered: bool = False
    card_power_watts: float | None = None
    mcu_temperature_celsius: float | None = None


def _parse_blocks(text: str, *, ended: bool, id_closes: bool) -> UsagesText:
    state = _Blocks({}, {}, {})
    for words in lines_of(text, ended=ended):
        line = _field_of(words)
        if line is None:
            # Blocks are parted by an empty line. Figures of a block that has lost its
            # id must not run into the next one.
            if not words.strip() and state.numbered:
                _end_block(state, id_closes)
                state.chip = None
        elif line.label == "NPU ID":
            _end_block(state, id_closes)
            # A new text of another card: what was not closed belongs to neither.
            state.card, state.chip_count = integer(line.value), None
            state.chip, state.numbered, state.in_mcu = None, False, False
        elif line.label == "Chip Count":
            state.chip_count, state.numbered = integer(line.value), True
        elif line.label == "Chip ID":
            state.numbered = True
            if not id_closes:
                _end_block(state, id_closes)
            state.chip, state.in_mcu = integer(line.value), False
            if id_closes:
                _store(state)
        elif line.label == "Chip Name":
            _end_block(state, id_closes)
            state.chip, state.in_mcu = None, line.value.lower() == "mcu"
        elif line.label in _FIELDS:
            _read_figure(state, line)
    _end_block(state, id_closes)
    if not state.chips:
        state.problems["no chip found"] = None
    elif state.chip_count is not None and len(state.chips) < state.chip_count:
        state.problems["fewer chips than the tool counts"] = None
    return UsagesText(
        chips=tuple(state.chips.values()),
        card=state.card,
        chip_count=state.chip_count,
        card_power_watts=state.card_power_watts,
        mcu_temperature_celsius=state.mcu_temperature_celsius,
        problems=tuple(state.problems),
    )


def _read_figure(state: _Blocks, line: Field) -> None:
    name, read = _FIELDS[line.label]
    value = read(line.value)
    if state.in_mcu:
        if name == "temperature_celsius":
            state.mcu_temperature_celsius = value
        elif name == "power_watts":
            state.card_power_watts = value
        return
    if value is None and not is_absent(line.value):
        state.problems[f"{line.label} is not readable"] = None
    if line.label in state.open:
        # Two blocks ran together. Which chip has which figure is lost.
        state.problems[f"{line.label} stands twice in one block"] = None
        state.open, state.chip, state.numbered = {}, None, True
        return
    state.open[line.label] = value


def _end_block(state: _Blocks, id_closes: bool) -> None:
    """Keep or drop the figures of a block that ends without a ``Chip ID`` of its own."""
    if not state.open:
        return
    if state.card is not None and not state.numbered:
        # The layout of the 950: neither Chip Count nor Chip ID, one chip per card.
        state.chip = None
        _store(state)
    elif not id_closes and state.chip is not None:
        _store(state)
    else:
        state.problems["the figures of a chip stand without its id"] = None
        state.open = {}


def _store(state: _Blocks) -> None:
    figures = {_FIELDS[label][0]: value for label, value in state.open.items() if value is not None}
    state.open = {}
    if state.card is None or (state.numbered and state.chip is None):
        state.problems["the figures of a chip stand without its id"] = None
        return
    for capacity, rates in _PARTS.items():
        if figures.get(capacity) == 0:
            for name in (capacity, *rates):
                figures.pop(name, None)
    for name in (*_PARTS, *_COUNTS):
        if figures.get(name, 0) < 0:
            figures.pop(name)
    key = ChipKey(state.card, state.chip)
    state.chips[key] = ChipUsages(key, **figures)


_KNOWN = {field.name for field in fields(ChipUsages)}
if not {name for name, _ in _FIELDS.values()} <= _KNOWN:
    raise AssertionError("a label of _FIELDS has no field in ChipUsages")
