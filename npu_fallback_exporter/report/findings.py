"""What a report means, in one sentence each; the first is the verdict.

The limits are those of the alerts in deploy/prometheus/rules/alerts.yml.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..history.series import RECENT_MOMENTS
from ..pages.notes import printable
from . import units
from .model import FAILED, Report

BAD, WATCH, FINE, UNKNOWN = "bad", "watch", "fine", "unknown"
LEVELS = (BAD, UNKNOWN, WATCH, FINE)

_TIME_SHARE_BAD = 0.2
_TIME_SHARE_TURNS = 0.05
_IDLE_CORES = 0.3
_BUSY_CPU = 0.5
_EVENTS_PER_OPERATOR = 0.001
_SMI_AGE_SECONDS = 120.0
_LEAST_MINUTES = 90.0  # seconds are told below
_RECENT_POINTS = RECENT_MOMENTS - 1


@dataclass(frozen=True)
class Finding:
    """One sentence.

    Attributes:
        level: BAD: users feel it or nothing is counted; UNKNOWN: there is nothing to judge yet;
            WATCH: look at it during the day; FINE.
        alert: heading in docs/runbook.md; empty: none.
    """

    level: str
    en: str
    zh: str
    alert: str = ""


def findings(report: Report) -> tuple[Finding, ...]:
    """Return the verdict, and after it what else is to be known, the worst first."""
    verdict = _verdict(report)
    others = [finding for finding in _others(report) if finding.alert != verdict.alert]
    return (verdict, *sorted(others, key=lambda finding: LEVELS.index(finding.level)))


def _verdict(report: Report) -> Finding:
    broken = [source for source in report.sources if source.state == FAILED]
    if any(source.name == "fallback" for source in broken):
        return Finding(
            BAD,
            "The pages of the servers cannot be read: nothing below is up to date.",
            "无法读取服务进程的计数页：以下数据不是最新的。",
            "NpuFallbackCollectorFailed",
        )
    if not report.processes and not report.processes_finished:
        return _nobody(report)
    if report.operators and not report.device_allocations and not report.events:
        return Finding(
            WATCH,
            "No fallback, but no tensor was ever made on an NPU either: does this server use it?",
            "没有回退，但也从未在 NPU 上创建张量：该服务是否真的在使用 NPU？",
            "NpuArmedWithoutDeviceWork",
        )
    return _fallbacks(report)


def _nobody(report: Report) -> Finding:
    failures = sum(report.arm_failures.values())
    if failures:
        reasons = ", ".join(report.arm_failures)
        return Finding(
            BAD,
            f"Nothing is counted: the hook could not be armed in {failures} "
            f"{_plural(failures, 'process', 'processes')} ({reasons}).",
            f"没有任何计数：{failures} 个进程未能启用钩子（{reasons}）。",
            "NpuFallbackArmFailed",
        )
    return Finding(
        UNKNOWN,
        "No server process counts yet: start the server with NPU_FALLBACK_HOOK=1.",
        "还没有服务进程在计数：请以 NPU_FALLBACK_HOOK=1 启动服务。",
        "NpuFallbackHookNotArmed",
    )


@dataclass(frozen=True)
class _Window:
    """What the verdict is about: the last minutes where there is a history, else all."""

    en: str
    zh: str
    events: int
    share: float | None
    per_operator: float | None
    top: str


def _window(report: Report) -> _Window:
    history = report.history
    if history is None or history.armed_seconds <= 0:
        return _Window(
            "",
            "",
            report.events,
            report.share(report.host_seconds),
            report.events / report.operators if report.operators else None,
            report.ops[0].op if report.events else "",
        )
    en, zh = f"{round(history.seconds)} s", f"{round(history.seconds)} 秒"
    if history.seconds >= _LEAST_MINUTES:
        minutes = round(history.seconds / 60.0)
        en, zh = f"{minutes} min", f"{minutes} 分钟"
    return _Window(
        f"In the last {en}, ",
        f"最近 {zh}内，",
        history.events,
        history.host_seconds / history.armed_seconds,
        history.events / history.operators if history.operators else None,
        history.ops[0].op if history.ops else "",
    )


def _fallbacks(report: Report) -> Finding:
    window = _window(report)
    if not window.events:
        return _none(report, window)
    level, alert = WATCH, ""
    if window.share is not None and window.share > _TIME_SHARE_BAD:
        level, alert = BAD, "NpuFallbackHostTimeShareHigh"
    elif _takes_turns(report, window.share):
        level, alert = BAD, "NpuAndCpuTakeTurns"
    elif window.per_operator is not None and window.per_operator > _EVENTS_PER_OPERATOR:
        alert = "NpuFallbackShareAboveBudget"
    en, zh = _told(window, measured=bool(report.host_seconds))
    return Finding(level, f"{window.en}{en}", f"{window.zh}{zh}", alert)


def _told(window: _Window, *, measured: bool) -> tuple[str, str]:
    number = units.count(window.events)
    calls, top = _plural(window.events, "call", "calls"), printable(window.top)
    if window.share is None or not measured:
        return (
            f"{number} operator {calls} ran on the host CPU, most of the cost in {top}.",
            f"{number} 次算子调用在主机 CPU 上执行，主要是 {top}。",
        )
    part = units.share(window.share)
    return (
        f"{part} of the server's time went into {number} operator {calls} on the host CPU, "
        f"most of it {top}.",
        f"服务进程 {part} 的时间用于 {number} 次在主机 CPU 上执行的算子调用，主要是 {top}。",
    )


def _none(report: Report, window: _Window) -> Finding:
    if not report.processes:
        return Finding(
            UNKNOWN,
            f"All {report.processes_finished} server processes have ended: these are their counts.",
            f"全部 {report.processes_finished} 个服务进程都已结束：以下是它们的计数。",
            "NpuFallbackHookNotArmed",
        )
    if report.events:
        return Finding(
            FINE,
            f"{window.en}no operator fell back to the CPU; {units.count(report.events)} "
            f"{_plural(report.events, 'call', 'calls')} had before.",
            f"{window.zh}没有算子回退到 CPU；此前共有 {units.count(report.events)} 次。",
        )
    return Finding(
        FINE,
        "No operator has fallen back to the CPU.",
        "没有算子回退到 CPU。",
    )


def _takes_turns(report: Report, share: float | None) -> bool:
    history = report.history
    if history is None or share is None:
        return False
    npu = _mean([value for line in history.npu.values() for value in line[-_RECENT_POINTS:]])
    cpus = [_mean(line[-_RECENT_POINTS:]) for line in (history.host_cpu, history.container_cpu)]
    cpu = max((one for one in cpus if one is not None), default=0.0)
    idle = npu is not None and npu < _IDLE_CORES
    return idle and share > _TIME_SHARE_TURNS and cpu > _BUSY_CPU


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _others(report: Report) -> Iterator[Finding]:
    blocked = [op for op in report.ops if op.blocked]
    if blocked:
        times, name = sum(op.blocked for op in blocked), printable(blocked[0].op)
        yield Finding(
            WATCH,
            f"Strict mode refused {units.count(times)} {_plural(times, 'call', 'calls')}, "
            f"such as {name}: the code that made them got an exception.",
            f"严格模式拒绝了 {units.count(times)} 次调用，例如 {name}：调用方收到了异常。",
            "NpuFallbackRefused",
        )
    failed = [op for op in report.ops if op.errors]
    if failed:
        times, name = sum(op.errors for op in failed), printable(failed[0].op)
        yield Finding(
            WATCH,
            f"{units.count(times)} {_plural(times, 'fallback', 'fallbacks')} raised, such as "
            f"{name}.",
            f"{units.count(times)} 次回退抛出了异常，例如 {name}。",
        )
    if report.arm_failures:
        times, reasons = sum(report.arm_failures.values()), ", ".join(report.arm_failures)
        yield Finding(
            WATCH,
            f"The hook could not be armed in {times} {_plural(times, 'process', 'processes')} "
            f"({reasons}): what happens there is not counted.",
            f"{times} 个进程未能启用钩子（{reasons}）：其中发生的一切都没有计数。",
            "NpuFallbackArmFailed",
        )
    if report.processes_finished and not report.processes and report.events:
        yield Finding(
            WATCH,
            "No server process is alive now.",
            "当前没有存活的服务进程。",
            "NpuFallbackHookNotArmed",
        )
    if report.pages_unreadable:
        files, reasons = sum(report.pages_unreadable.values()), ", ".join(report.pages_unreadable)
        yield Finding(
            WATCH,
            f"{files} {_plural(files, 'file', 'files')} in the pages folder cannot be read "
            f"({reasons}).",
            f"计数页目录中有 {files} 个文件无法读取（{reasons}）。",
            "NpuFallbackPagesSkipped",
        )
    if report.ops_overflowed:
        yield Finding(
            WATCH,
            f"{report.ops_overflowed} operators share the row __other__.",
            f"{report.ops_overflowed} 个算子合并在 __other__ 一行。",
        )
    yield from _sources(report)


def _sources(report: Report) -> Iterator[Finding]:
    for source in report.sources:
        late = (source.age_seconds or 0.0) > _SMI_AGE_SECONDS
        if source.name == "npu_smi" and (source.state == FAILED or late):
            yield Finding(
                WATCH,
                "npu-smi gives no fresh sample: utilization is not known.",
                "npu-smi 没有新的采样：利用率未知。",
                "NpuSmiDown",
            )
        elif source.state == FAILED and source.name not in {"fallback", "npu_smi", "pages"}:
            yield Finding(
                WATCH,
                f"The collector {source.name} fails: its figures are missing.",
                f"采集器 {source.name} 失败：缺少其数据。",
                "NpuFallbackCollectorFailed",
            )


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many
