"""Which operators have a label of their own."""

from __future__ import annotations

from collections.abc import Iterable

from .pages.layout import OTHER_OP


class OpLabels:
    """At most `most` op names keep a label, first come; the others share ``__other__``.

    What was decided for a name stays for the lifetime of the exporter, so that no series ever
    moves from one label to another.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._labels = {OTHER_OP: OTHER_OP}
        self._folded = 0

    def __contains__(self, name: str) -> bool:
        return name in self._labels

    def __getitem__(self, name: str) -> str:
        return self._labels[name]

    def add(self, first_seen: Iterable[tuple[int, str]]) -> None:
        """Decide for new names.

        Args:
            first_seen: unix nanoseconds and name. The order of time decides, then that of names,
                so that an exporter that starts again on the same pages decides the same.
        """
        for _, name in sorted(first_seen):
            if name in self._labels:
                continue
            own = len(self._labels) - self._folded <= self._most
            self._labels[name] = name if own else OTHER_OP
            self._folded += not own

    @property
    def folded(self) -> int:
        """Names without a label of their own."""
        return self._folded
