"""The host beside the devices: its CPUs, the container's CPU limit, and the server processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from npu_fallback_exporter.cgroup import CgroupCpu, read_cgroup_cpu

#: Utilization over less than this is noise; a second scraper gets the first one's value.
_SHORTEST_WINDOW_SECONDS = 1.0


class HostCpu:
    """Utilization of the CPUs since the call before, each between 0 and 1.

    Args:
        monotonic: clock of the windows, in seconds.
        cpu_times: busy and total CPU seconds of the host so far.
        cgroup: the limited control group of this process, or None.
    """

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        cpu_times: Callable[[], tuple[float, float]] | None = None,
        cgroup: Callable[[], CgroupCpu | None] = read_cgroup_cpu,
    ) -> None:
        self._monotonic = monotonic
        self._cpu_times = cpu_times or _host_cpu_times
        self._cgroup = cgroup
        self._since = monotonic()
        self._host_before = self._cpu_times()
        self._cgroup_before = cgroup()
        self._host_ratio: float | None = None
        self._cgroup_ratio: float | None = None

    def sample(self) -> tuple[float | None, float | None]:
        """Return the ratios of the host and of the container's limit; None: not known.

        Not thread-safe.
        """
        now = self._monotonic()
        window = now - self._since
        if window < _SHORTEST_WINDOW_SECONDS:
            return self._host_ratio, self._cgroup_ratio
        busy, total = self._cpu_times()
        busy_before, total_before = self._host_before
        group, group_before = self._cgroup(), self._cgroup_before
        self._host_ratio = _ratio(busy - busy_before, total - total_before)
        self._cgroup_ratio = None
        if group is not None and group_before is not None:
            used = group.used_seconds - group_before.used_seconds
            self._cgroup_ratio = _ratio(used, window * group.limit_cpus)
        self._since, self._host_before, self._cgroup_before = now, (busy, total), group
        return self._host_ratio, self._cgroup_ratio


@dataclass(frozen=True)
class ProcessIdentity:
    """Tells a process from every other on this boot of the host.

    ``start_ticks`` is its start in clock ticks since boot, ``pid_namespace`` the
    inode of the namespace in which ``pid`` holds.
    """

    pid: int
    start_ticks: int
    pid_namespace: int


@dataclass(frozen=True)
class ServerFigures:
    """The hooked processes together; None where none of them could ever be seen."""

    cpu_seconds: float | None
    resident_bytes: int | None


class ServerProcesses:
    """CPU time and memory of the hooked processes that can be seen from here.

    What a process had used when it was last seen stays in the sum when it ends,
    so that the sum never goes down. Not thread-safe.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._last: dict[ProcessIdentity, float] = {}
        self._carried: float | None = None

    def sample(self, identities: Iterable[ProcessIdentity]) -> ServerFigures:
        """Look at the processes now.

        Args:
            identities: the hooked processes that are thought to live.
        """
        namespace = own_pid_namespace(self._proc)
        listed = {identity for identity in identities if identity.pid_namespace == namespace}
        resident: int | None = None
        for identity in listed | set(self._last):
            figures = self._look(identity)
            if figures is None:
                ended = self._last.pop(identity, None)
                if ended is not None:
                    self._carried = (self._carried or 0.0) + ended
                continue
            seconds, size = figures
            self._last[identity] = max(seconds, self._last.get(identity, 0.0))
            if identity in listed:
                resident = (resident or 0) + size
        if self._last and self._carried is None:
            self._carried = 0.0
        total = None if self._carried is None else self._carried + sum(self._last.values())
        return ServerFigures(total, resident)

    def _look(self, identity: ProcessIdentity) -> tuple[float, int] | None:
        """Return CPU seconds and resident bytes, or None if it is not the very process."""
        if start_ticks_of(identity.pid, self._proc) != identity.start_ticks:
            return None
        try:
            process = psutil.Process(identity.pid)
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    return None
                times, size = process.cpu_times(), process.memory_info().rss
        except psutil.Error:
            return None
        # The number may have gone to another process while it was looked at.
        if start_ticks_of(identity.pid, self._proc) != identity.start_ticks:
            return None
        return times.user + times.system, size


def own_pid_namespace(proc: Path = Path("/proc")) -> int | None:
    """Return the inode of this process's pid namespace, or None where it is not shown."""
    try:
        return (proc / "self" / "ns" / "pid").stat().st_ino
    except OSError:
        return None


def start_ticks_of(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return the start of a process in clock ticks since boot, or None if there is none."""
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
        # The name in field 2 may hold blanks and brackets.
        return int(stat[stat.rindex(b")") + 2 :].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _host_cpu_times() -> tuple[float, float]:
    times = psutil.cpu_times()
    # Linux counts a guest's time in "user" and "nice" too.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    idle = times.idle + getattr(times, "iowait", 0.0)
    return total - idle, total


def _ratio(part: float, whole: float) -> float | None:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else None
