"""What the collector has seen, by phase of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .call_sites import CallSite, Lines, ModulePath

if TYPE_CHECKING:
    from .routes import Decision


@dataclass
class Calls:
    """Calls of one operator in one phase; bytes are of all of them."""

    count: int = 0
    bytes_to_host: int = 0
    bytes_to_device: int = 0


@dataclass
class Seen:
    """An operator that falls back, may, or is not supported, with where it was called from."""

    decision: Decision
    by_phase: dict[str, Calls] = field(default_factory=dict)
    sites: Counter[CallSite] = field(default_factory=Counter)


class Recording:
    """Counts operators and findings under the phase that is set.

    Args:
        lines: finds the program's line.
        modules: knows which module runs.
    """

    def __init__(self, lines: Lines, modules: ModulePath) -> None:
        self.phase = ""
        #: How often a phase has run, where that is not once.
        self.repeats: dict[str, int] = {}
        self.operators: dict[str, Counter[str]] = {}
        self.findings: dict[str, Seen] = {}
        self.assumptions: Counter[tuple[str, CallSite]] = Counter()
        self.values_read: Counter[CallSite] = Counter()
        self._lines = lines
        self._modules = modules

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Count under this phase inside of the block."""
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = before

    def operator(self, op: str) -> None:
        """Count a call of an operator on the NPU."""
        counts = self.operators.get(self.phase)
        if counts is None:
            counts = self.operators[self.phase] = Counter()
        counts[op] += 1

    def finding(self, op: str, decision: Decision, to_host: int, to_device: int) -> None:
        """Count a call that does not, or may not, run on the NPU."""
        self.operator(op)
        seen = self.findings.setdefault(op, Seen(decision))
        calls = seen.by_phase.setdefault(self.phase, Calls())
        calls.count += 1
        calls.bytes_to_host += to_host
        calls.bytes_to_device += to_device
        seen.sites[self.site()] += 1

    def assume(self, what: str) -> None:
        """Note that something was not known here, and what was assumed."""
        self.assumptions[(what, self.site())] += 1

    def read_value(self) -> None:
        """Note that the program read a value here, which was known."""
        self.values_read[self.site()] += 1

    def site(self) -> CallSite:
        """Return where the program is."""
        return CallSite(str(self._modules), self._lines.current())
