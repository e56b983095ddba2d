"""Which release of the exporter answers."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.samples import Sample

from .. import __version__
from ..metrics import exporter


class BuildInfoCollector:
    """The version of this package."""

    name = "build_info"

    def collect(self) -> Iterable[Metric]:
        """One family."""
        family = exporter.BUILD_INFO.family()
        family.samples.append(Sample(exporter.BUILD_INFO.name, {"version": __version__}, 1))
        return [family]
