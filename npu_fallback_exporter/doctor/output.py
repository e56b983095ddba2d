"""Findings as lines for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from ..pages.notes import printable
from .finding import Group, Status

_STYLES = {Status.OK: "green", Status.WARNING: "bold yellow", Status.PROBLEM: "bold red"}
_STATUS_WIDTH = max(len(status.value) for status in Status)


def count(groups: Iterable[Group], status: Status) -> int:
    """Return how many findings have that status."""
    return sum(finding.status is status for group in groups for finding in group.findings)


def show(groups: tuple[Group, ...], out: Console) -> None:
    """Print one line per finding, the next step below it, and the verdict last.

    Lines are not wrapped, so that paths and commands can be copied.
    """
    width = max((len(f.name) for group in groups for f in group.findings), default=0)
    for group in groups:
        _say(out, Text(group.title, style="bold"))
        for finding in group.findings:
            line = Text("  ")
            line.append(f"{finding.status.value:<{_STATUS_WIDTH}}", _STYLES[finding.status])
            line.append(f"  {finding.name:<{width}}  {printable(finding.text)}")
            _say(out, line)
            if finding.next_step:
                indent = " " * (_STATUS_WIDTH + width + 6)
                _say(out, Text(f"{indent}-> {printable(finding.next_step)}"))
        _say(out, Text())
    _say(out, Text(verdict(groups), style="bold"))


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


def _say(out: Console, line: Text) -> None:
    out.print(line, soft_wrap=True)
