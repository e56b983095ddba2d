"""The answer as JSON; docs/audit.md describes the fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .findings import Audit, Finding, Place

FORMAT = 1


def as_json(audit: Audit, failing: Sequence[str]) -> dict[str, Any]:
    """Return what ``--format json`` prints."""
    return {
        "format": FORMAT,
        "target": audit.target,
        "torch_npu": audit.torch_npu,
        "torch": audit.torch,
        "failing": list(failing),
        "findings": [_finding(one) for one in audit.findings],
        "operators": {phase: dict(counts) for phase, counts in audit.operators.items()},
        "assumed": [{"what": one.what, **_place(one.place)} for one in audit.assumptions],
        "values_read": [_place(place) for place in audit.values_read],
        "notes": list(audit.notes),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "op": finding.op,
        "verdict": finding.verdict.value,
        "standing": finding.standing.value,
        "condition": finding.condition,
        "remedy": finding.remedy,
        "phases": {
            phase: {
                "calls": calls.calls,
                "repeats": calls.repeats,
                "bytes_d2h": calls.bytes_d2h,
                "bytes_h2d": calls.bytes_h2d,
            }
            for phase, calls in finding.phases.items()
        },
        "call_sites": [_place(place) for place in finding.places],
    }


def _place(place: Place) -> dict[str, Any]:
    return {"module": place.module, "line": place.line, "calls": place.calls}
