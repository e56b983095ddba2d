"""Explanations and differences as text for a terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator

from .difference import Difference
from .explanation import Explanation, OperatorExplanation
from .table import Entry, Route, RoutingTable

_LABEL = 13
_WIDTH = 96
_OVERLOADS_IN_FULL = 3

_VERDICTS = {
    Route.NPU_KERNEL: "runs on the NPU",
    Route.COMPOSITE: "is made of other operators",
    Route.FALLBACK: "falls back to the host CPU",
    Route.EXPLICIT: "has an NPU kernel that may compute on the host CPU",
    Route.UNSUPPORTED: "is not supported on the NPU",
}
_WHY = {
    Route.NPU_KERNEL: "a kernel is registered for the NPU",
    Route.COMPOSITE: "registered for all devices; each operator that it calls has its own route",
    Route.FALLBACK: "no kernel is registered for the NPU and none for all devices, so the"
    " dispatcher takes torch_npu's fallback: it copies every NPU tensor to the host, runs the CPU"
    " kernel and copies results back (kind dispatcher)",
    Route.EXPLICIT: "a kernel is registered for the NPU; under a condition it copies its tensors to"
    " the host and computes there (kind explicit_kernel)",
    Route.UNSUPPORTED: "no kernel is registered for the NPU, none for all devices, and none for CPU"
    " that the fallback could run: a call warns and then raises",
}
_ROUTES = {
    Route.NPU_KERNEL: "NPU kernel",
    Route.COMPOSITE: "composite",
    Route.FALLBACK: "falls back",
    Route.EXPLICIT: "may compute on the host",
    Route.UNSUPPORTED: "unsupported",
    None: "not defined",
}


def explanation_text(explanation: Explanation, chinese: bool = False) -> str:
    """Return what ``explain`` prints; remedies in Chinese if asked for."""
    operators = explanation.operators
    lines = [_source(explanation.table)]
    if len(operators) > 1:
        lines += ["", _summary(explanation)]
    full = _in_full(operators)
    for operator in full:
        lines += ["", *_operator(operator, chinese)]
    rest = [operator for operator in operators if operator not in full]
    if rest:
        lines += ["", "Others of that name:", *map(_one_line, rest)]
    return "\n".join(lines)


def _in_full(operators: tuple[OperatorExplanation, ...]) -> list[OperatorExplanation]:
    """Those that say something new: composite ones are told with what they lead to."""
    shown: list[OperatorExplanation] = []
    for operator in operators:
        told = {other.entry.op for other in shown}
        if operator.computes_on_host and not told.intersection(e.op for e in operator.leads_to):
            shown.append(operator)
    return shown[:_OVERLOADS_IN_FULL] or list(operators[:1])


def _summary(explanation: Explanation) -> str:
    counts = Counter(operator.entry.route for operator in explanation.operators)
    parts = (f"{counts[route]} {_ROUTES[route]}" for route in Route if counts[route])
    return f"{explanation.asked} is {len(explanation.operators)} operators: {', '.join(parts)}"


def difference_text(difference: Difference) -> str:
    """Return what ``explain --diff`` prints."""
    lines = [f"torch_npu {difference.before} -> {difference.after}"]
    for title, changes in difference.groups():
        lines += ["", f"{title[0].upper()}{title[1:]}: {len(changes)}"]
        lines += (
            f"  {change.op}  ({_ROUTES[change.before]} -> {_ROUTES[change.after]})"
            for change in changes
        )
    return "\n".join(lines)


def _source(table: RoutingTable) -> str:
    where = "the dispatcher of this Python" if table.live else "the package's table"
    return (
        f"torch_npu {table.version}, PyTorch {table.torch_version}, {table.soc} (read from {where})"
    )


def _operator(operator: OperatorExplanation, chinese: bool) -> Iterator[str]:
    entry = operator.entry
    yield f"{entry.op} {_verdict(operator)}"
    yield from _field("Why", _WHY[entry.route])
    if entry.condition:
        yield from _field("On the host", f"if {entry.condition}".replace("if always", "always"))
    if operator.registered_at:
        yield from _field("Registered", f"at {operator.registered_at}")
    if operator.leads_to:
        yield from _field("Leads to", ", ".join(map(_routed, operator.leads_to[:6])))
    if operator.python:
        yield from _field("From Python", ", ".join(operator.python))
    yield from _field("Versions", _versions(operator))
    if operator.remedy:
        text = operator.remedy.zh if chinese else operator.remedy.en
        yield from _field("Instead" if operator.computes_on_host else "If not", text)
    elif operator.computes_on_host:
        yield from _field("Instead", "nothing is known; keep it out of the steps that repeat")


def _verdict(operator: OperatorExplanation) -> str:
    if operator.entry.route is not Route.COMPOSITE or not operator.leads_to:
        return _VERDICTS[operator.entry.route]
    worst = next((e for e in operator.leads_to if e.route is Route.FALLBACK), None)
    if worst:
        return f"falls back to the host CPU, through {worst.op}"
    if operator.computes_on_host:
        return "may compute on the host CPU, through an operator that it calls"
    return f"runs on the NPU, through {operator.leads_to[0].op}"


def _versions(operator: OperatorExplanation) -> str:
    if not operator.versions:
        return "defined by another package, not by PyTorch or torch_npu"
    parts = [f"{_ROUTES[route]} in {_list(found)}" for route, found in operator.versions.items()]
    if len(parts) == 1:
        (route,) = operator.versions
        known = operator.versions[route]
        return f"{_ROUTES[route]} in all {len(known)} known, {known[0]} to {known[-1]}"
    return "; ".join(parts)


def _list(versions: tuple[str, ...]) -> str:
    return ", ".join(versions)


def _routed(entry: Entry) -> str:
    return f"{entry.op} ({_ROUTES[entry.route]})"


def _one_line(operator: OperatorExplanation) -> str:
    to = ", ".join(entry.op for entry in operator.leads_to[:_OVERLOADS_IN_FULL])
    return (
        f"  {operator.entry.op}: {_ROUTES[operator.entry.route]}{f', leads to {to}' if to else ''}"
    )


def _field(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {label:<{_LABEL}}",
        subsequent_indent=" " * (_LABEL + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )
