"""The catalogue as a page of documentation."""

from __future__ import annotations

from . import CATALOGUE
from .spec import MetricSpec

_HEAD = """\
# Metrics

Written by `python -m npu_fallback_exporter.metrics`; change the catalogue, not this file.

Units are base units. No metric has a pid label. `npu` is the physical chip id, or `logical-N`
where the server process does not decide it. Counters never go down while the exporter runs;
what may be missing from one is said in its own text.
"""


def render() -> str:
    """Markdown of the whole catalogue, ending in a newline."""
    parts = [_HEAD]
    for section, specs in CATALOGUE.items():
        parts.append(f"\n## {section}\n")
        parts.extend(_entry(spec) for spec in specs)
    parts.append(
        "\nThe `process_*` metrics of this exporter's own process come from prometheus_client.\n"
    )
    return "".join(parts)


def _entry(spec: MetricSpec) -> str:
    facts: list[str] = [spec.type]
    if spec.unit:
        facts.append(f"unit {spec.unit}")
    if spec.labels:
        facts.append("labels " + ", ".join(f"`{label}`" for label in spec.labels))
    if spec.bounds:
        facts.append("buckets " + ", ".join(f"{bound:g}" for bound in spec.bounds))
    return f"\n### `{spec.name}`\n\n{'; '.join(facts)}\n\n{spec.help}\n"
