"""Metrics of the host and of the hooked processes as the host sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric

from npu_fallback_exporter.host import HostCpu, ProcessIdentity, ServerProcesses
from npu_fallback_exporter.metrics import exporter
from npu_fallback_exporter.pages.model import Page


class HostCollector:
    """CPU of host and container, and CPU time and memory of the hooked processes together.

    Args:
        live: the processes that are armed now, as their pages name them.
    """

    name = "host"

    def __init__(
        self,
        live: Callable[[], Iterable[ProcessIdentity]],
        cpu: HostCpu | None = None,
        servers: ServerProcesses | None = None,
    ) -> None:
        self._live = live
        self._cpu = cpu or HostCpu()
        self._servers = servers or ServerProcesses()

    def collect(self) -> Iterable[Metric]:
        """Families of this moment; what cannot be seen from here is absent."""
        host, container = self._cpu.sample()
        if host is not None:
            yield exporter.HOST_CPU_UTILIZATION.of(host)
        if container is not None:
            yield exporter.CONTAINER_CPU_UTILIZATION.of(container)
        figures = self._servers.sample(self._live())
        if figures.cpu_seconds is not None:
            yield exporter.SERVER_CPU_SECONDS.of(figures.cpu_seconds)
        if figures.resident_bytes is not None:
            yield exporter.SERVER_RESIDENT_MEMORY.of(figures.resident_bytes)


def identities_of(pages: Iterable[Page]) -> list[ProcessIdentity]:
    """Return the processes that wrote these pages."""
    return [
        ProcessIdentity(page.pid, page.identity.start_ticks, page.identity.pid_namespace)
        for page in pages
    ]
