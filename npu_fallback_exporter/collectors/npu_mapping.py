"""Whether npu-smi agrees with the pages about the chips."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric

from npu_fallback_exporter.errors import NpuFallbackError
from npu_fallback_exporter.host import own_pid_namespace
from npu_fallback_exporter.npu_smi.figures import ChipKey, InfoTable
from npu_fallback_exporter.npu_smi.mapping import PageClaim, contradictions
from npu_fallback_exporter.npu_smi.sampler import NpuSmiSampler
from npu_fallback_exporter.pages.model import Page
from npu_fallback_exporter.pages.npu_identity import NpuLabels

#: Inode of the first pid namespace of a host, the one whose pids the tool prints.
_HOST_PID_NAMESPACE = 0xEFFFFFFC


class MappingError(NpuFallbackError):
    """npu-smi and a page disagree about a chip."""


class NpuMappingCollector:
    """Has no families: it fails while npu-smi contradicts a page, which makes that visible.

    The labels stay as they are. A page's chip is decided once, npu-smi only checks it.

    Args:
        sampler: gives the last sample.
        live: the pages of the processes that live now.
    """

    name = "npu_mapping"

    def __init__(self, sampler: NpuSmiSampler, live: Callable[[], Iterable[Page]]) -> None:
        self._sampler = sampler
        self._live = live

    def collect(self) -> Iterable[Metric]:
        """Compare the last sample with the pages of now.

        Raises:
            MappingError: they contradict each other; its text names all contradictions.
        """
        snapshot = self._sampler.snapshot()
        if snapshot.info is not None:
            namespace = own_pid_namespace()
            found = contradictions(
                [claim for page in self._live() for claim in claims_of(page, namespace)],
                snapshot.labels,
                chips_of_pid(snapshot.info, namespace),
            )
            if found:
                raise MappingError(
                    "; ".join(found), "check ASCEND_RT_VISIBLE_DEVICES and the mounted devices"
                )
        return ()


def claims_of(page: Page, namespace: int | None) -> list[PageClaim]:
    """Return one claim per chip that the page has counted for.

    Args:
        page: a page of a live process.
        namespace: inode of this exporter's pid namespace.
    """
    touched = {key.npu for keys in (page.slots, page.syncs, page.transfers) for key in keys}
    labels = NpuLabels(page.chips)
    pid = page.pid if page.identity.pid_namespace == namespace else None
    return [PageClaim(labels.label(index), pid) for index in sorted(touched)]


def chips_of_pid(info: InfoTable, namespace: int | None) -> dict[int, frozenset[ChipKey]]:
    """Return the chips by the pid that is valid in the namespace of this exporter."""
    chips: dict[int, set[ChipKey]] = {}
    for process in info.processes:
        pid = process.pid if namespace == _HOST_PID_NAMESPACE else process.container_pid
        if pid is not None:
            chips.setdefault(pid, set()).add(process.key)
    return {pid: frozenset(keys) for pid, keys in chips.items()}
