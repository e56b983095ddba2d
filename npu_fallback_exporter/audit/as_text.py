"""The answer as text for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .findings import Assumption, Audit, Finding, PhaseCalls, Place, Standing, Verdict

_PLACES = 3
_ASSUMPTIONS = 10
_HEADINGS = {
    Verdict.UNSUPPORTED: "Not supported, on the host neither (the call raises):",
    Verdict.FALLS_BACK: "Falls back to the host CPU:",
    Verdict.MAY_FALL_BACK: "May compute on the host (there is an NPU kernel; it depends):",
}
#: Phases and what one run of them is called.
_UNITS = {
    "load": "while loading",
    "forward": "per forward",
    "prefill": "for the prompt",
    "step": "per decoding step",
    "script": "in the script",
}


def as_text(audit: Audit, failing: Sequence[str]) -> str:
    """Return what ``--format text`` prints."""
    return "\n".join(_lines(audit, failing))


def _lines(audit: Audit, failing: Sequence[str]) -> Iterator[str]:
    yield f"{audit.target} on torch_npu {audit.torch_npu} (PyTorch {audit.torch})"
    for verdict, heading in _HEADINGS.items():
        findings = [one for one in audit.findings if one.verdict is verdict]
        if findings:
            yield from ("", heading)
        for finding in findings:
            yield from _finding(finding)
    if audit.assumptions:
        yield from ("", "Not known, so assumed:")
        yield from _assumptions(audit.assumptions)
    notes = [*audit.notes, *_read(audit.values_read)]
    if notes:
        yield ""
        yield from (f"Note: {note}." for note in notes)
    yield from ("", _verdict(audit, failing))


def _finding(finding: Finding) -> Iterator[str]:
    mark = "" if finding.standing is Standing.NEW else f"  [{finding.standing.value}]"
    yield f"  {finding.op}{mark}"
    for phase, calls in finding.phases.items():
        yield f"    {_per(calls)} {_UNITS.get(phase, phase)}, {_bytes(calls)}"
    yield from _places(finding.places)
    if finding.condition:
        yield f"    if: {finding.condition}"
    if finding.remedy:
        yield f"    instead: {finding.remedy}"


def _places(places: Sequence[Place]) -> Iterator[str]:
    merged: dict[tuple[str, str], int] = {}
    for place in places:
        # The layers of a model are one place to its reader.
        key = (re.sub(r"\.\d+(?=\.|$)", ".*", place.module), place.line)
        merged[key] = merged.get(key, 0) + place.calls
    for module, line in list(merged)[:_PLACES]:
        yield f"    {_where(module, line)}"
    if len(merged) > _PLACES:
        yield f"    and {_count(len(merged) - _PLACES, 'more place', 'more places')}"


def _assumptions(assumptions: Sequence[Assumption]) -> Iterator[str]:
    for one in assumptions[:_ASSUMPTIONS]:
        where = _where(one.place.module, one.place.line)
        times = f", {one.place.calls} times" if one.place.calls > 1 else ""
        yield f"  {one.what} ({where}{times})"
    if len(assumptions) > _ASSUMPTIONS:
        yield f"  and {len(assumptions) - _ASSUMPTIONS} more: see --format json"


def _read(places: Sequence[Place]) -> Iterator[str]:
    if places:
        first = _where(places[0].module, places[0].line)
        more = f" and {_count(len(places) - 1, 'more place', 'more places')}" if places[1:] else ""
        yield (
            f"what the program does after reading a value, at {first}{more}, is what it does for "
            "the inputs and weights of this run"
        )


def _verdict(audit: Audit, failing: Sequence[str]) -> str:
    sure = sum(one.fails for one in audit.findings)
    unsure = len(audit.findings) - sure
    operators = len({op for counts in audit.operators.values() for op in counts})
    parts = [f"{_count(sure, 'operator falls back', 'operators fall back')}, of {operators}"]
    if unsure:
        parts.append(f"{unsure} more may")
    if failing:
        parts.append(f"failed by {', '.join(failing)}")
    return f"{'; '.join(parts)}."


def _where(module: str, line: str) -> str:
    return f"{line}, {module}" if module else line


def _per(calls: PhaseCalls) -> str:
    each = calls.calls / calls.repeats
    number = f"{each:,.0f}" if each.is_integer() else f"{each:,.2f}"
    return f"{number} {'call' if number == '1' else 'calls'}"


def _bytes(calls: PhaseCalls) -> str:
    each = "" if calls.calls == 1 else " each"
    return (
        f"{_size(calls.bytes_d2h / calls.calls)} to the host and "
        f"{_size(calls.bytes_h2d / calls.calls)} back{each}"
    )


def _size(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} GiB"


def _count(number: int, one: str, many: str) -> str:
    return f"{number or 'no'} {one if number in {0, 1} else many}"
