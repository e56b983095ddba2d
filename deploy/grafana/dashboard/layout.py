"""Where panels are: rows of a title and lines of panels, 24 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import GridPos

from .panels import Panel

COLUMNS = 24


@dataclass(frozen=True)
class Line:
    """Panels beside each other, of one height, which share the width.

    Attributes:
        height: in units of the grid (30 pixels).
        panels: from left to right.
        widths: in columns; equal shares where it is empty.
    """

    height: int
    panels: Sequence[Panel]
    widths: Sequence[int] = ()

    def placed(self, top: int) -> Iterator[Panel]:
        """Yield the panels, placed at ``top``."""
        widths = self.widths or [COLUMNS // len(self.panels)] * len(self.panels)
        if sum(widths) > COLUMNS or len(widths) != len(self.panels):
            raise ValueError(f"{widths} does not fit {len(self.panels)} panels")
        left = 0
        for panel, width in zip(self.panels, widths, strict=True):
            yield panel.grid_pos(GridPos(h=self.height, w=width, x=left, y=top))
            left += width


@dataclass(frozen=True)
class Row:
    """A title, and lines of panels below it."""

    title: str
    lines: Sequence[Line]


def add(board: dashboard.Dashboard, rows: Sequence[Row]) -> None:
    """Add the rows below each other."""
    top = 0
    identity = 1
    for row in rows:
        title = dashboard.Row(row.title).grid_pos(GridPos(h=1, w=COLUMNS, x=0, y=top))
        board.with_row(title.id(identity))
        top, identity = top + 1, identity + 1
        for line in row.lines:
            for panel in line.placed(top):
                board.with_panel(panel.id(identity))
                identity += 1
            top += line.height
