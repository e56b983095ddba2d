"""The answer of an audit: plain data, without torch."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Verdict(enum.Enum):
    """What is said of an operator; the values are those of the JSON."""

    FALLS_BACK = "falls back"
    MAY_FALL_BACK = "may fall back"
    UNSUPPORTED = "unsupported"


class Standing(enum.Enum):
    """Whether an operator was expected."""

    NEW = "new"
    IN_BASELINE = "in baseline"
    ALLOWED = "allowed"


@dataclass(frozen=True)
class PhaseCalls:
    """Calls of an operator in one phase of the run.

    Attributes:
        calls: in all repeats of the phase together.
        repeats: how often the phase ran; more than one for decoding steps.
        bytes_d2h: bytes to the host, of all these calls.
        bytes_h2d: bytes back, of all these calls.
    """

    calls: int
    repeats: int
    bytes_d2h: int
    bytes_h2d: int


@dataclass(frozen=True)
class Place:
    """A place in the program.

    Attributes:
        module: path of the module, such as ``Net.layers.0``; may be empty.
        line: ``file:line in function``.
        calls: how often it was passed.
    """

    module: str
    line: str
    calls: int


@dataclass(frozen=True)
class Finding:
    """An operator that falls back, may, or is not supported.

    Attributes:
        op: full overload name.
        verdict: what happens.
        condition: under which it may fall back; empty where it always does.
        phases: calls by phase.
        places: where it is called from, most calls first.
        remedy: what to use instead; empty where nothing is known.
        standing: whether it was expected.
    """

    op: str
    verdict: Verdict
    condition: str
    phases: Mapping[str, PhaseCalls]
    places: tuple[Place, ...]
    remedy: str = ""
    standing: Standing = Standing.NEW

    @property
    def fails(self) -> bool:
        """Whether it surely does not run on the NPU."""
        return self.verdict is not Verdict.MAY_FALL_BACK


@dataclass(frozen=True)
class Assumption:
    """Something that the audit could not know."""

    what: str
    place: Place


@dataclass(frozen=True)
class Audit:
    """What one audit has found.

    Attributes:
        target: what was audited, as it was named.
        torch_npu: version of the table.
        torch: version of the PyTorch that ran.
        findings: those that surely fall back first, then by calls.
        operators: calls of all operators that reach the NPU's key, by phase.
        assumptions: what was not known.
        values_read: places where the program read a value that was known, of the sample inputs.
        notes: what else limits the answer, one sentence each.
    """

    target: str
    torch_npu: str
    torch: str
    findings: tuple[Finding, ...]
    operators: Mapping[str, Mapping[str, int]]
    assumptions: tuple[Assumption, ...] = ()
    values_read: tuple[Place, ...] = ()
    notes: tuple[str, ...] = field(default=())
