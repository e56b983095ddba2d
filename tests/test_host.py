"""The host beside the devices: CPUs, the container's limit, and the hooked processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from npu_fallback_exporter.cgroup import CgroupCpu, read_cgroup_cpu
from npu_fallback_exporter.collectors.host import HostCollector, identities_of
from npu_fallback_exporter.host import (
    HostCpu,
    ProcessIdentity,
    ServerProcesses,
    own_pid_namespace,
    start_ticks_of,
)
from npu_fallback_exporter.pages.page import read_page
from tests.support.page_factory import PageFactory

pytestmark = pytest.mark.timeout(60)
_SPIN = "import sys\nsum(range(3_000_000))\nprint(flush=True)\nsys.stdin.read()"


class Machine:
    """CPU counters in the hands of the test."""

    def __init__(self) -> None:
        self.now, self.busy, self.total = 50.0, 100.0, 1000.0
        self.cgroup: CgroupCpu | None = None
        self.cpu = HostCpu(
            monotonic=lambda: self.now,
            cpu_times=lambda: (self.busy, self.total),
            cgroup=lambda: self.cgroup,
        )

    def run(self, seconds: float, busy: float) -> tuple[float | None, float | None]:
        """Let four CPUs run for so long, so much of it busy."""
        self.now += seconds
        self.busy += busy
        self.total += 4 * seconds
        return self.cpu.sample()


def test_host_utilization_is_that_since_the_scrape_before() -> None:
    machine = Machine()
    assert machine.run(10, 30) == (0.75, None)
    assert machine.run(10, 4) == (0.1, None)


def test_there_is_no_host_utilization_before_a_second_has_passed() -> None:
    machine = Machine()
    assert machine.run(0.5, 1) == (None, None)
    assert machine.run(0.5, 1) == (0.5, None)


def test_a_second_scraper_does_not_shorten_the_window() -> None:
    machine = Machine()
    machine.run(10, 20)
    assert machine.run(0.1, 0.4) == (0.5, None)
    assert machine.run(9.9, 19.6) == (0.5, None)


def test_counters_that_step_back_give_no_negative_utilization() -> None:
    assert Machine().run(10, -5) == (0.0, None)


def test_the_container_is_measured_against_its_limit() -> None:
    machine = Machine()
    machine.cgroup = CgroupCpu(used_seconds=7.0, limit_cpus=0.5)
    machine.run(10, 0)
    machine.cgroup = CgroupCpu(used_seconds=11.0, limit_cpus=0.5)
    assert machine.run(10, 0) == (0.0, 0.8)
    machine.cgroup = None
    assert machine.run(10, 0) == (0.0, None)


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


def proc_with(tmp_path: Path, cgroup: str) -> Path:
    write(tmp_path / "proc" / "self", cgroup=cgroup)
    return tmp_path / "proc"


def test_version_2_in_a_container_reads_its_own_group(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    write(mount, cgroup__controllers="cpu", cpu__max="150000 100000\n")
    write(mount, cpu__stat="usage_usec 2500000\nuser_usec 1\n")
    found = read_cgroup_cpu(proc_with(tmp_path, "0::/\n"), mount)
    assert found == CgroupCpu(used_seconds=2.5, limit_cpus=1.5)


def test_version_2_takes_the_tightest_limit_above_it(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    write(mount, cgroup__controllers="cpu")
    write(mount / "pod", cpu__max="50000 100000\n", cpu__stat="usage_usec 9000000\n")
    write(mount / "pod" / "box", cpu__max="max 100000\n", cpu__stat="usage_usec 4000000\n")
    found = read_cgroup_cpu(proc_with(tmp_path, "0::/pod/box\n"), mount)
    assert found == CgroupCpu(used_seconds=4.0, limit_cpus=0.5)


def test_version_1_reads_the_path_of_the_host_from_the_container(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    write(
        mount / "cpu,cpuacct",
        cpu__cfs_quota_us="200000\n",
        cpu__cfs_period_us="100000\n",
        cpuacct__usage="3000000000\n",
    )
    proc = proc_with(tmp_path, "12:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n")
    assert read_cgroup_cpu(proc, mount) == CgroupCpu(used_seconds=3.0, limit_cpus=2.0)


@pytest.mark.parametrize(
    ("cgroup", "limit"),
    [("0::/\n", "max 100000\n"), ("0::/\n", "broken\n"), ("nonsense\n", "1 2\n"), ("", "")],
)
def test_a_group_without_a_readable_limit_is_none(tmp_path: Path, cgroup: str, limit: str) -> None:
    mount = tmp_path / "cgroup"
    write(mount, cgroup__controllers="cpu", cpu__max=limit, cpu__stat="nothing\n")
    assert read_cgroup_cpu(proc_with(tmp_path, cgroup), mount) is None


def test_a_path_that_leads_out_of_the_mount_is_not_followed(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    write(mount, cgroup__controllers="cpu")
    write(tmp_path / "other", cpu__max="1 1\n", cpu__stat="usage_usec 1\n")
    assert read_cgroup_cpu(proc_with(tmp_path, "0::/../other\n"), mount) is None


def test_this_machine_is_read_without_an_exception() -> None:
    read_cgroup_cpu()


def identity_of(pid: int, **other: int) -> ProcessIdentity:
    ticks, namespace = start_ticks_of(pid), own_pid_namespace()
    assert ticks is not None
    assert namespace is not None
    values = {"pid": pid, "start_ticks": ticks, "pid_namespace": namespace} | other
    return ProcessIdentity(**values)


@contextmanager
def spinning_child() -> Iterator[subprocess.Popen[bytes]]:
    """A child that has used some CPU time and now waits."""
    child = subprocess.Popen(
        [sys.executable, "-c", _SPIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        child.stdout.readline()
        yield child
    finally:
        child.kill()
        child.communicate()


def test_the_very_processes_are_added_up() -> None:
    with spinning_child() as child:
        both = [identity_of(os.getpid()), identity_of(child.pid)]
        one = ServerProcesses().sample(both[1:])
        found = ServerProcesses().sample(both)
        times = psutil.Process(child.pid).cpu_times()
        assert one.cpu_seconds == times.user + times.system
        assert found.cpu_seconds is not None
        assert one.cpu_seconds is not None
        assert found.cpu_seconds > one.cpu_seconds
        assert found.resident_bytes is not None
        assert found.resident_bytes > psutil.Process(child.pid).memory_info().rss


@pytest.mark.parametrize("other", [{"start_ticks": 1}, {"pid_namespace": 42}])
def test_another_process_of_the_same_number_is_absent(other: dict[str, int]) -> None:
    found = ServerProcesses().sample([identity_of(os.getpid(), **other)])
    assert (found.cpu_seconds, found.resident_bytes) == (None, None)


def test_the_sum_stays_when_a_process_ends() -> None:
    servers = ServerProcesses()
    with spinning_child() as child:
        identity = identity_of(child.pid)
        alive = servers.sample([identity])
        child.kill()
        # A zombie: its parent has not reaped it yet.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert servers.sample([identity]).cpu_seconds == alive.cpu_seconds
    ended = servers.sample([identity])
    assert ended.cpu_seconds == alive.cpu_seconds
    assert ended.resident_bytes is None
    assert servers.sample([]).cpu_seconds == alive.cpu_seconds


def test_a_process_that_is_not_listed_for_a_while_counts_once() -> None:
    servers = ServerProcesses()
    with spinning_child() as child:
        identity = identity_of(child.pid)
        first = servers.sample([identity]).cpu_seconds
        assert servers.sample([]).cpu_seconds == first
        assert servers.sample([identity]).cpu_seconds == first


def test_a_reading_below_the_one_before_does_not_lower_the_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers, identity = ServerProcesses(), identity_of(os.getpid())
    readings = iter([(5.0, 1), (4.9, 1), (5.5, 1)])
    monkeypatch.setattr(servers, "_look", lambda identity: next(readings))
    assert [servers.sample([identity]).cpu_seconds for _ in range(3)] == [5.0, 5.0, 5.5]


def test_without_any_process_nothing_is_told() -> None:
    found = ServerProcesses().sample([])
    assert (found.cpu_seconds, found.resident_bytes) == (None, None)


def test_a_name_with_brackets_does_not_hide_the_start_time(tmp_path: Path) -> None:
    stat = b"7 (a) 1 (b) S 1 " + b"0 " * 17 + b"4711 0 0\n"
    write(tmp_path / "7")
    (tmp_path / "7" / "stat").write_bytes(stat)
    assert start_ticks_of(7, tmp_path) == 4711


def test_a_page_names_its_process(tmp_path: Path) -> None:
    mine = identity_of(os.getpid())
    factory = PageFactory(
        pid=mine.pid, start_ticks=mine.start_ticks, pid_namespace=mine.pid_namespace
    )
    page = read_page(str(factory.write(tmp_path))).page
    assert identities_of([page]) == [mine]
    names = [metric.name for metric in HostCollector(lambda: identities_of([page])).collect()]
    assert names[-2:] == ["npu_server_cpu_seconds", "npu_server_resident_memory_bytes"]


def test_pages_of_another_namespace_leave_the_server_families_out(tmp_path: Path) -> None:
    page = read_page(str(PageFactory(pid_namespace=42).write(tmp_path))).page
    names = [metric.name for metric in HostCollector(lambda: identities_of([page])).collect()]
    assert not [name for name in names if name.startswith("npu_server_")]
