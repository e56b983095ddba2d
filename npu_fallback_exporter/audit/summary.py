"""From what was recorded to the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .findings import Assumption, Audit, Finding, PhaseCalls, Place, Verdict
from .routes import Way

if TYPE_CHECKING:
    from .call_sites import CallSite
    from .recording import Recording, Seen

_VERDICTS = {
    Way.FALLBACK: Verdict.FALLS_BACK,
    Way.MAY_FALL_BACK: Verdict.MAY_FALL_BACK,
    Way.UNSUPPORTED: Verdict.UNSUPPORTED,
}
_ORDER = (Verdict.UNSUPPORTED, Verdict.FALLS_BACK, Verdict.MAY_FALL_BACK)


def summarise(recording: Recording, target: str, torch_npu: str, torch: str) -> Audit:
    """Return the answer; its findings have no remedy yet, and nothing was expected."""
    findings = [_finding(op, seen, recording.repeats) for op, seen in recording.findings.items()]
    findings.sort(key=lambda one: (_ORDER.index(one.verdict), -_calls(one), one.op))
    assumptions = [
        Assumption(what, _place(site, calls))
        for (what, site), calls in recording.assumptions.most_common()
    ]
    read = tuple(_place(site, calls) for site, calls in recording.values_read.most_common())
    return Audit(
        target,
        torch_npu,
        torch,
        tuple(findings),
        {phase: dict(sorted(counts.items())) for phase, counts in recording.operators.items()},
        tuple(assumptions),
        read,
        _notes(recording, torch_npu, torch),
    )


def with_remedies(audit: Audit) -> Audit:
    """Add what to use instead."""
    from ..routing.remedies import remedy_for

    def remedy(op: str) -> str:
        found = remedy_for(op)
        return found.en if found else ""

    findings = tuple(replace(one, remedy=remedy(one.op)) for one in audit.findings)
    return replace(audit, findings=findings)


def _notes(recording: Recording, torch_npu: str, torch: str) -> tuple[str, ...]:
    notes = []
    release = torch_npu.partition(".post")[0]
    if torch.partition("+")[0] != release:
        notes.append(
            f"the model ran with PyTorch {torch}, and torch_npu {torch_npu} needs {release}: "
            "composite operators may consist of others there"
        )
    unlisted = sorted(op for op, seen in recording.findings.items() if not seen.decision.listed)
    if unlisted:
        notes.append(
            f"the table does not list {', '.join(unlisted)}: judged by the kernels that this "
            "process has"
        )
    return tuple(notes)


def _finding(op: str, seen: Seen, repeats: dict[str, int]) -> Finding:
    phases = {
        phase: PhaseCalls(
            calls.count, repeats.get(phase, 1), calls.bytes_to_host, calls.bytes_to_device
        )
        for phase, calls in seen.by_phase.items()
    }
    places = tuple(_place(site, calls) for site, calls in seen.sites.most_common())
    return Finding(op, _VERDICTS[seen.decision.way], seen.decision.condition, phases, places)


def _place(site: CallSite, calls: int) -> Place:
    return Place(site.module, site.line, calls)


def _calls(finding: Finding) -> int:
    return sum(phase.calls for phase in finding.phases.values())
