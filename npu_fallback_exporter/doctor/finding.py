"""What one check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    """How a finding is judged."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One line.

    Attributes:
        name: what was looked at, such as ``torch``.
        status: how it is judged.
        text: what was found, with the value.
        next_step: what the reader can do; empty where nothing need be done.
    """

    name: str
    status: Status
    text: str
    next_step: str = ""


@dataclass(frozen=True)
class Group:
    """Findings that belong together, in the order in which they are read."""

    title: str
    findings: tuple[Finding, ...]


def ok(name: str, text: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(name, Status.OK, text)


def warning(name: str, text: str, next_step: str) -> Finding:
    """Return a finding that costs something, or may."""
    return Finding(name, Status.WARNING, text, next_step)


def problem(name: str, text: str, next_step: str) -> Finding:
    """Return a finding that keeps events from being counted or shown."""
    return Finding(name, Status.PROBLEM, text, next_step)
