"""Plots as inline SVG, without scripts and with classes for colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_ROW, _BAR, _LABEL, _WIDTH = 26, 16, 260, 760
_VALUE = 90


def bars(rows: Sequence[tuple[str, float, str]], title: str, css_class: str = "bar") -> str:
    """Return horizontal bars.

    Args:
        rows: name, length (any unit, at least 0) and the words at its end.
        title: what the plot shows.
        css_class: of the bars.
    """
    most = max((length for _, length, _ in rows), default=0.0)
    room = _WIDTH - _LABEL - _VALUE
    parts = []
    for number, (name, length, words) in enumerate(rows):
        y = number * _ROW
        width = max(1.0, room * length / most) if most > 0 and length > 0 else 0.0
        middle = y + _ROW / 2
        parts.append(
            f'<text class="name" x="{_LABEL - 8}" y="{middle}">{escape(_short(name))}</text>'
            f'<rect class="{css_class}" x="{_LABEL}" y="{y + (_ROW - _BAR) / 2}" '
            f'width="{width:.1f}" height="{_BAR}" rx="2"/>'
            f'<text class="value" x="{_LABEL + width + 6:.1f}" y="{middle}">{escape(words)}</text>'
        )
    return _svg(_WIDTH, max(1, len(rows)) * _ROW, title, "".join(parts))


def histogram(counts: Sequence[int], bounds: Sequence[str], title: str) -> str:
    """Return a small histogram: one column for each count, its upper bound below."""
    most = max(counts, default=0)
    column, height = 34, 60
    parts = []
    for number, (count, bound) in enumerate(zip(counts, bounds, strict=True)):
        tall = height * count / most if most else 0.0
        tall = max(1.0, tall) if count else 0.0
        x = number * column
        parts.append(
            f'<rect class="bar" x="{x + 3}" y="{height - tall:.1f}" width="{column - 6}" '
            f'height="{tall:.1f}"><title>{escape(f"up to {bound}: {count:,}")}</title></rect>'
            f'<text class="bound" x="{x + column / 2}" y="{height + 14}">{escape(bound)}</text>'
        )
    return _svg(len(counts) * column, height + 20, title, "".join(parts))


def lines(
    series: Sequence[tuple[str, str, Sequence[float | None]]], most: float, title: str
) -> str:
    """Return lines over time, one point a step; gaps where a value is None.

    Args:
        series: name, CSS class and values; all of one length.
        most: value at the top of the plot.
        title: what the plot shows.
    """
    width, height = _WIDTH, 140
    parts = [f'<path class="grid" d="M0 {height}H{width}M0 {height / 2}H{width}M0 0.5H{width}"/>']
    for name, css_class, values in series:
        path = _path(values, most, width, height)
        parts.append(
            f'<path class="line {css_class}" d="{path}"><title>{escape(name)}</title></path>'
        )
    return _svg(width, height + 2, title, "".join(parts))


def _path(values: Sequence[float | None], most: float, width: int, height: int) -> str:
    step = width / max(1, len(values) - 1)
    path, pen_is_down = [], False
    for number, value in enumerate(values):
        if value is None:
            pen_is_down = False
            continue
        y = height * (1 - min(1.0, value / most)) if most > 0 else height
        path.append(f"{'L' if pen_is_down else 'M'}{number * step:.1f} {y:.1f}")
        pen_is_down = True
    return "".join(path)


def _svg(width: float, height: float, title: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        f'class="plot">{content}</svg>'
    )


def _short(name: str) -> str:
    return name if len(name) <= 36 else f"{name[:35]}…"
