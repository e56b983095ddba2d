"""A report: what fell back, what it cost, and whether that can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..history.series import History

#: Which place a report was made from.
PAGES, SCRAPE, EXPORTER = "pages", "scrape", "exporter"

#: States of a source: it gives data; it gives none; it was switched off or never there.
GOOD, FAILED, OFF = "good", "failed", "off"


@dataclass(frozen=True)
class Call:
    """How an operator was called first.

    Attributes:
        site: file, line and function, or words where there was none; empty: not recorded.
        arguments: in words; empty: not recorded.
    """

    site: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class Remedy:
    """What to do instead, in English and Chinese."""

    en: str
    zh: str


@dataclass(frozen=True)
class OpCost:
    """One operator of one kind, over all NPUs and processes. Sizes in bytes.

    Attributes:
        host_seconds: without the first copy to the host; None: not measured.
        duration_seconds: of all events together, waiting for queued device work included.
        buckets: how many events took at most as long as each bound of
            ``npu_fallback_duration_seconds``, and longer; not cumulative; empty: not known.
        npus: events by NPU.
        call: None: not known, or not to be told.
        remedy: None: none is known.
    """

    op: str
    kind: str
    events: int = 0
    blocked: int = 0
    errors: int = 0
    host_seconds: float | None = None
    duration_seconds: float = 0.0
    bytes_d2h: int = 0
    bytes_h2d: int = 0
    buckets: tuple[int, ...] = ()
    npus: Mapping[str, int] = field(default_factory=dict)
    call: Call | None = None
    remedy: Remedy | None = None

    @property
    def mean_seconds(self) -> float | None:
        """Mean duration of an event; None: there was none."""
        return self.duration_seconds / self.events if self.events else None

    @property
    def cost_seconds(self) -> float:
        """What it is ranked by: host time, or the duration where that is not measured."""
        return self.duration_seconds if self.host_seconds is None else self.host_seconds


@dataclass(frozen=True)
class TransferSum:
    """Copies of one direction and cause."""

    direction: str
    cause: str
    bytes: int
    transfers: int


@dataclass(frozen=True)
class DriverSum:
    """Copies of one direction at the driver boundary."""

    direction: str
    bytes: int
    transfers: int


@dataclass(frozen=True)
class ModeInForce:
    """A mode, and where it came from."""

    mode: str
    source: str


@dataclass(frozen=True)
class HookVersions:
    """What a hook says of itself; empty: not known."""

    torch: str
    torch_npu: str
    cann: str
    hook: str
    track: str
    boundary: str


@dataclass(frozen=True)
class Worker:
    """One live process.

    Attributes:
        pid: in its own pid namespace; None: not to be told.
        npus: labels of the NPUs that it has counted for.
    """

    started_unix: float
    mode: str
    npus: tuple[str, ...]
    events: int
    host_seconds: float
    pid: int | None = None


@dataclass(frozen=True)
class Device:
    """One NPU as npu-smi sees it; ratios are 0 to 1; None: npu-smi does not give it."""

    npu: str
    name: str = ""
    utilization: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    health: str = ""


@dataclass(frozen=True)
class Source:
    """A source of figures: a collector, npu-smi, a folder.

    Attributes:
        state: GOOD, FAILED or OFF.
        detail: a reason or a path; empty: none, or not to be told.
        age_seconds: of its last sample; None: does not apply.
    """

    name: str
    state: str
    detail: str = ""
    age_seconds: float | None = None


@dataclass(frozen=True)
class Report:
    """What was counted from `since_unix` to `made_unix`, both Unix times in seconds.

    Attributes:
        origin: PAGES, SCRAPE or EXPORTER.
        since_unix: None: not known.
        processes: live ones.
        armed_seconds: summed over processes; what shares of time are of.
        operators, device_allocations: None: not watched (NPU_FALLBACK_TRACK=fallbacks).
        ops: the most expensive first.
        driver: empty: the boundary is not watched.
        host_cpu, container_cpu: utilization, 0 to 1; None: not known.
        arm_failures, pages_unreadable: by reason, without zeros.
        ops_overflowed: ops in ``__other__``.
        history: of an exporter; else None.
        shows_details: False: call sites, paths and pids are left out for this reader.
    """

    made_unix: float
    origin: str
    exporter_version: str
    since_unix: float | None = None
    processes: int = 0
    processes_finished: int = 0
    armed_seconds: float = 0.0
    operators: int | None = None
    device_allocations: int | None = None
    modes: tuple[ModeInForce, ...] = ()
    hooks: tuple[HookVersions, ...] = ()
    ops: tuple[OpCost, ...] = ()
    transfers: tuple[TransferSum, ...] = ()
    syncs: Mapping[str, int] = field(default_factory=dict)
    driver: tuple[DriverSum, ...] = ()
    workers: tuple[Worker, ...] = ()
    devices: tuple[Device, ...] = ()
    host_cpu: float | None = None
    container_cpu: float | None = None
    sources: tuple[Source, ...] = ()
    arm_failures: Mapping[str, int] = field(default_factory=dict)
    pages_unreadable: Mapping[str, int] = field(default_factory=dict)
    ops_overflowed: int = 0
    history: History | None = None
    shows_details: bool = True

    @property
    def events(self) -> int:
        """Of all ops."""
        return sum(op.events for op in self.ops)

    @property
    def host_seconds(self) -> float:
        """Of all ops."""
        return sum(op.host_seconds or 0.0 for op in self.ops)

    def share(self, host_seconds: float | None) -> float | None:
        """Part of the armed time; None: it or the time is not known."""
        if host_seconds is None or self.armed_seconds <= 0:
            return None
        return host_seconds / self.armed_seconds

    def per_thousand_operators(self, events: int) -> float | None:
        """Events in a thousand operators; None: operators are not watched, or none ran."""
        return 1000.0 * events / self.operators if self.operators else None

    def without_details(self) -> Report:
        """Return what everybody may see: no path, call site, argument or pid."""
        return replace(
            self,
            ops=tuple(replace(op, call=None) for op in self.ops),
            workers=tuple(replace(worker, pid=None) for worker in self.workers),
            sources=tuple(replace(source, detail="") for source in self.sources),
            shows_details=False,
        )


def ranked(ops: Iterable[OpCost]) -> tuple[OpCost, ...]:
    """Return ops with the most expensive first; those that were only refused come last."""
    return tuple(sorted(ops, key=lambda op: (-op.cost_seconds, -op.events, op.op, op.kind)))
