"""How a metric is declared: once, as a :class:`MetricSpec`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prometheus_client import Metric
from prometheus_client.samples import Sample

MetricType = Literal["counter", "gauge", "histogram", "info"]

_NAME_SUFFIX = {"counter": "_total", "info": "_info"}


@dataclass(frozen=True)
class MetricSpec:
    """One metric.

    Attributes:
        name: the name in the text format, so with ``_total`` or ``_info``.
        type: counter, gauge, histogram or info.
        unit: base unit that the name ends in; empty: the metric counts things.
        labels: names of the labels, without ``le``.
        help: one line: what it is, its unit, what it does not count, and for a counter when it
            may go down or undercount.
        bounds: upper bounds of the buckets of a histogram, in ``unit``, without ``+Inf``.
    """

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    bounds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.endswith(_NAME_SUFFIX.get(self.type, "")):
            raise ValueError(f"{self.type} {self.name} lacks its suffix")
        if self.unit and not self.family_name.endswith(f"_{self.unit}"):
            raise ValueError(f"{self.name} does not end in its unit {self.unit}")

    @property
    def family_name(self) -> str:
        """Name of the family as OpenMetrics spells it: without ``_total`` or ``_info``."""
        return self.name.removesuffix(_NAME_SUFFIX.get(self.type, ""))

    def family(self) -> Metric:
        """Return a new family without samples."""
        return Metric(self.family_name, self.help, self.type, self.unit)

    def of(self, value: float) -> Metric:
        """Return a new family with one sample, for a metric without labels."""
        family = self.family()
        family.samples.append(Sample(self.name, {}, value))
        return family
