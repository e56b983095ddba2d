"""Which physical chip a line of npu-smi means, and whether the pages agree.

The label ``npu`` is the physical id, the number of ``/dev/davinciN``. Only some
layouts print it. "NPU ID" is the number of a card or of a slot (it can be 215),
and the logical id counts from 0 in every container. So each chip is decided by
the first of these that holds:

1. ``Phy-ID`` of the table, or ``Chip Phy-ID`` of ``-m``;
2. the device nodes seen here, if the logical ids are just their numbers, or if there
   are as many nodes as chips and the logical ids count them through: the driver
   numbers what it sees in their order;
3. one chip on the card, and a layout without logical ids (910, 950): the number
   of the card, where no device node contradicts it;
4. the logical id, where no device node is seen at all;

and is otherwise labelled ``card-N-chip-M``, which joins with nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npu_fallback_exporter.npu_smi.figures import ChipFigures, ChipKey, IdMap

_NODE = re.compile(r"davinci([0-9]{1,6})")


def device_nodes(folder: Path = Path("/dev")) -> frozenset[int]:
    """Return the numbers of the device nodes ``davinciN`` in ``folder``; empty if unreadable."""
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return frozenset()
    return frozenset(int(match[1]) for name in names if (match := _NODE.fullmatch(name)))


def needs_id_map(chips: Iterable[ChipFigures]) -> bool:
    """Whether ``-m`` can say more about these chips than their table does."""
    return any(chip.physical_id is None for chip in chips)


def npu_labels(
    chips: Sequence[ChipFigures], id_map: IdMap | None, nodes: frozenset[int]
) -> dict[ChipKey, str]:
    """Decide the label ``npu`` of each chip.

    Args:
        chips: the chips of one table.
        id_map: what ``-m`` printed, or None where it was not asked or failed.
        nodes: numbers of the device nodes seen here.

    Returns:
        One label per chip. Should two chips come to the same number, neither
        keeps it: a wrong join is worse than none.
    """
    rows = {row.key: row for row in id_map.rows} if id_map is not None else {}
    # The 950 numbers its chips in ``-m`` but not in the table.
    by_card = {row.key.card: row for row in rows.values() if row.key.chip == 0}
    logic: dict[ChipKey, int | None] = {}
    physical: dict[ChipKey, int | None] = {}
    for chip in chips:
        row = rows.get(chip.key) if chip.key.chip is not None else by_card.get(chip.key.card)
        in_map = (row.logic_id, row.physical_id) if row is not None else (None, None)
        logic[chip.key] = chip.logic_id if chip.logic_id is not None else in_map[0]
        physical[chip.key] = chip.physical_id if chip.physical_id is not None else in_map[1]
    in_order = sorted(nodes)
    ids = set(logic.values())
    if len(ids) == len(chips) == len(nodes) and ids in (nodes, set(range(len(chips)))):
        node_of = dict(zip(sorted(i for i in ids if i is not None), in_order, strict=True))
    else:
        node_of = {}
    on_card = _chips_per_card(chips)

    labels: dict[ChipKey, str] = {}
    for chip in chips:
        key, number = chip.key, physical[chip.key]
        logic_id = logic[key]
        if number is None and logic_id is not None:
            number = node_of.get(logic_id)
        if number is None and chip.logic_id is None and on_card[key.card] == 1:
            number = key.card if not nodes or key.card in nodes else None
        if number is None and not nodes:
            number = logic_id
        labels[key] = _undecided(key) if number is None else str(number)
    seen = list(labels.values())
    return {
        key: label if seen.count(label) == 1 else _undecided(key) for key, label in labels.items()
    }


@dataclass(frozen=True)
class PageClaim:
    """What one page says: the chip its process works on, and the process.

    ``pid`` is None where the process lives in another pid namespace than npu-smi
    shows, so that its number would mean nothing here.
    """

    npu: str
    pid: int | None = None


def contradictions(
    claims: Iterable[PageClaim],
    labels: Mapping[ChipKey, str],
    chips_of_pid: Mapping[int, frozenset[ChipKey]],
) -> tuple[str, ...]:
    """Compare what pages decided with what npu-smi shows; each result is one sentence.

    A page whose chip is undecided (``logical-N``) claims nothing. Its label is
    never changed by what is found here.
    """
    shown = set(labels.values())
    all_decided = bool(shown) and all(label.isdecimal() for label in shown)
    found: dict[str, None] = {}
    claimed: dict[int, set[str]] = {}
    for claim in claims:
        if not claim.npu.isdecimal():
            continue
        if claim.pid is not None:
            claimed.setdefault(claim.pid, set()).add(claim.npu)
        if all_decided and claim.npu not in shown:
            listed = ", ".join(sorted(shown, key=int))
            found[f"a page works on npu {claim.npu}, npu-smi lists only {listed}"] = None
    for pid, npus in sorted(claimed.items()):
        seen = {labels[key] for key in chips_of_pid.get(pid, frozenset()) if key in labels}
        if seen and all(label.isdecimal() for label in seen) and not npus & seen:
            where = ", ".join(sorted(seen, key=int))
            said = ", ".join(sorted(npus, key=int))
            found[f"process {pid} is on npu {where}, its page says {said}"] = None
    return tuple(found)


def _chips_per_card(chips: Iterable[ChipFigures]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for chip in chips:
        counts[chip.key.card] = counts.get(chip.key.card, 0) + 1
    return counts


def _undecided(key: ChipKey) -> str:
    chip = "" if key.chip is None else f"-chip-{key.chip}"
    return f"card-{key.card}{chip}"
