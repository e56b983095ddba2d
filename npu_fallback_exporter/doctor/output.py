"""Findings as lines for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..pages.notes import printable
from .finding import Group, Status

_COLOURS = {Status.OK: "32", Status.WARNING: "1;33", Status.PROBLEM: "1;31"}
_BOLD = "1"
_STATUS_WIDTH = max(len(status.value) for status in Status)


def count(groups: Iterable[Group], status: Status) -> int:
    """Return how many findings have that status."""
    return sum(finding.status is status for group in groups for finding in group.findings)


def lines(groups: tuple[Group, ...], *, coloured: bool) -> Iterator[str]:
    """Yield one line per finding, the next step below it, and the verdict last.

    Lines are not wrapped, so that paths and commands can be copied. Nothing but the standard
    library is used: doctor runs in images of servers, from a folder that holds this package alone.

    Args:
        groups: what was found.
        coloured: mark what matters for a terminal.
    """

    def marked(text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if coloured else text

    width = max((len(f.name) for group in groups for f in group.findings), default=0)
    indent = " " * (_STATUS_WIDTH + width + 6)
    for group in groups:
        yield marked(group.title, _BOLD)
        for finding in group.findings:
            status = marked(f"{finding.status.value:<{_STATUS_WIDTH}}", _COLOURS[finding.status])
            yield f"  {status}  {finding.name:<{width}}  {printable(finding.text)}"
            if finding.next_step:
                yield f"{indent}-> {printable(finding.next_step)}"
        yield ""
    yield marked(verdict(groups), _BOLD)


def verdict(groups: tuple[Group, ...]) -> str:
    """Return the last line."""
    problems, warnings = count(groups, Status.PROBLEM), count(groups, Status.WARNING)
    counted = f"{_number(problems, 'problem')}, {_number(warnings, 'warning')}"
    if problems:
        return f"{counted}: mend the problems from the top down, then run doctor again"
    return counted if warnings else f"{counted}: ready"


def as_json(groups: tuple[Group, ...]) -> dict[str, Any]:
    """Return what ``--format json`` prints."""
    return {
        "problems": count(groups, Status.PROBLEM),
        "warnings": count(groups, Status.WARNING),
        "groups": [
            {
                "title": group.title,
                "findings": [
                    {
                        "name": finding.name,
                        "status": finding.status.value,
                        "text": finding.text,
                        "next_step": finding.next_step,
                    }
                    for finding in group.findings
                ],
            }
            for group in groups
        ],
    }


def _number(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
