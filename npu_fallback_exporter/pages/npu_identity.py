"""From the logical NPU index of a process to the label ``npu``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import layout
from .model import ChipEvidence

# CANN reads a list of decimal ids without blanks, and stops at anything else. Where it would
# stop, and whether a given release refuses the list instead, cannot be seen from here.
_ID_LIST = re.compile(r"[0-9]{1,4}(,[0-9]{1,4})*", re.ASCII)


class NpuLabels:
    """Labels of one process. They depend on the evidence alone, so they never change.

    The visible list holds indexes into the process's devices in ascending order of their numbers.
    A list that is not plain, names a device twice or names one that is not there decides nothing:
    a label that joins with nothing is better than one that joins with the wrong chip.
    """

    def __init__(self, evidence: ChipEvidence) -> None:
        chips = _visible_chips(evidence)[: layout.MAX_NPUS]
        self._certain = len(chips)
        self._labels = tuple(
            str(chips[index]) if index < self._certain else f"logical-{index}"
            for index in range(layout.MAX_NPUS)
        )

    def label(self, index: int) -> str:
        """Return the physical chip id of a logical index, or ``logical-<index>``."""
        return self._labels[index]

    def to_create(self, touched: Iterable[int]) -> tuple[str, ...]:
        """Labels for which an armed process has series at 0, in ascending order of the index.

        Args:
            touched: the indexes that the process has counted for.
        """
        certain = range(max(self._certain, 1))
        return tuple(self.label(index) for index in sorted({*certain, *touched}))


def _visible_chips(evidence: ChipEvidence) -> tuple[int, ...]:
    devices = evidence.davinci
    if evidence.visible_devices_lost:
        return ()
    if evidence.visible_devices is None:
        return devices
    if not _ID_LIST.fullmatch(evidence.visible_devices):
        return ()
    visible = [int(text) for text in evidence.visible_devices.split(",")]
    if len(set(visible)) < len(visible) or max(visible) >= len(devices):
        return ()
    return tuple(devices[index] for index in visible)
