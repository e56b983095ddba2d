"""Explanations and differences as JSON values."""

from __future__ import annotations

from typing import Any

from .difference import Difference
from .explanation import KINDS, Explanation, OperatorExplanation
from .remedies import Remedy


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return the document that ``explain --format json`` prints."""
    table = explanation.table
    return {
        "asked": explanation.asked,
        "torch_npu": table.version,
        "torch": table.torch_version,
        "soc": table.soc,
        "source": "dispatcher" if table.live else "table",
        "operators": [_operator(operator) for operator in explanation.operators],
    }


def difference_json(difference: Difference) -> dict[str, Any]:
    """Return the document that ``explain --diff A B --format json`` prints."""
    groups = {
        title.replace(" ", "_").replace(",", ""): [
            {
                "op": change.op,
                "before": change.before.value if change.before else None,
                "after": change.after.value if change.after else None,
            }
            for change in changes
        ]
        for title, changes in difference.groups()
    }
    return {"before": difference.before, "after": difference.after, **groups}


def _operator(operator: OperatorExplanation) -> dict[str, Any]:
    entry = operator.entry
    return {
        "op": entry.op,
        "route": entry.route.value,
        "kind": KINDS.get(entry.route),
        "condition": entry.condition,
        "registered_at": operator.registered_at,
        "computes_on_host": operator.computes_on_host,
        "leads_to": [{"op": e.op, "route": e.route.value} for e in operator.leads_to],
        "python": list(operator.python),
        "versions": {
            route.value if route else "not_defined": list(versions)
            for route, versions in operator.versions.items()
        },
        "remedy": _remedy(operator.remedy),
    }


def _remedy(remedy: Remedy | None) -> dict[str, str] | None:
    return {"kind": remedy.kind.value, "en": remedy.en, "zh": remedy.zh} if remedy else None
