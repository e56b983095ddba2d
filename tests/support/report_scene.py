"""An exporter in this process: real pages, collectors, history and web server; a clock of its own.

Only what npu-smi prints is made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.collectors.base import Collector
from npu_fallback_exporter.collectors.build_info import BuildInfoCollector
from npu_fallback_exporter.collectors.composite import CompositeCollector, Snapshot
from npu_fallback_exporter.collectors.fallback import FallbackCollector
from npu_fallback_exporter.collectors.host import HostCollector
from npu_fallback_exporter.collectors.npu_smi import NpuSmiCollector
from npu_fallback_exporter.history.sampler import HistorySampler
from npu_fallback_exporter.host import HostCpu
from npu_fallback_exporter.npu_smi.command import CallResult
from npu_fallback_exporter.npu_smi.diagnosis import Diagnosis, FailureReason
from npu_fallback_exporter.npu_smi.figures import ChipFigures, ChipKey, Health, Usage
from npu_fallback_exporter.npu_smi.sampler import NpuSmiSampler
from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.report.call_sites import CallSites
from npu_fallback_exporter.report.live import LiveReports
from npu_fallback_exporter.report.model import Remedy, Report
from npu_fallback_exporter.web.app import ExporterApp
from npu_fallback_exporter.web.watched_config import WatchedConfig

from .npu_smi_tables import Table
from .page_factory import SECOND_NS, PageFactory, writer_of
from .web import serving_app

BOOT_ID = "11111111-2222-3333-4444-555555555555"
START_UNIX = 1_760_000_000.0
START_SECOND = 1000.0
REMEDIES = {
    "aten::fmax.out": Remedy(
        "torch.maximum, where there are no NaNs", "没有 NaN 时改用 torch.maximum"
    )
}


class Scene:
    """An exporter whose time passes when the test says so.

    Attributes:
        folder: of the pages.
        seconds: since the start.
        utilization: of each chip in percent; None: npu-smi fails.
        cpu: of the host, 0 to 1.
        history: of the exporter.
    """

    def __init__(self, folder: Path, *, npu_smi: bool = True, shows_details: bool = True) -> None:
        self.folder = folder
        self.seconds = 0.0
        self.utilization: list[float] | None = [61.0, 58.0]
        self.cpu = 0.3
        self._busy = 0.0
        self._lives = ExitStack()
        self.sampler = None
        if npu_smi:
            self.sampler = NpuSmiSampler(
                self, monotonic=self._monotonic, wall_clock=self.unix, nodes=frozenset
            )
        fallback = FallbackCollector(
            lambda: [folder],
            Aggregator(boot_id=BOOT_ID),
            monotonic_ns=lambda: int(self._monotonic() * SECOND_NS),
        )
        self.history = HistorySampler(
            fallback,
            self.sampler,
            cpu=self._host(),
            wall_clock=self.unix,
            monotonic=self._monotonic,
        )
        collectors: list[Collector] = [fallback]
        if self.sampler is not None:
            collectors.append(NpuSmiCollector(self.sampler))
        collectors += [HostCollector(tuple, self._host()), BuildInfoCollector()]
        self.composite = CompositeCollector(collectors)
        call_sites = CallSites(lambda: [folder], self._monotonic) if shows_details else None
        self.reports = LiveReports(
            fallback, self.history, self.sampler, call_sites, wall_clock=self.unix
        )
        self.shows_details = shows_details

    def unix(self) -> float:
        return START_UNIX + self.seconds

    def _monotonic(self) -> float:
        return START_SECOND + self.seconds

    def _host(self) -> HostCpu:
        return HostCpu(
            monotonic=self._monotonic,
            cpu_times=lambda: (self._busy, self.seconds),
            cgroup=lambda: None,
        )

    def run(self, *arguments: str) -> CallResult:
        """Be npu-smi."""
        if self.utilization is None or arguments != ("info",):
            return CallResult(failure=Diagnosis(FailureReason.DRIVER, "no driver"))
        chips = tuple(
            ChipFigures(
                ChipKey(card, 0),
                "910B3",
                Health.OK,
                aicore_percent=percent,
                hbm_mib=Usage(30000 + card, 65536),
                physical_id=card,
            )
            for card, percent in enumerate(self.utilization)
        )
        return CallResult(stdout=Table("a3", chips).text, exit_status=0, complete=True)

    def cancel(self) -> None:
        pass

    def live(self, page: PageFactory) -> Path:
        """Put a page of a living process into the folder."""
        path = page.write(self.folder)
        self._lives.enter_context(writer_of(path))
        return path

    def pass_time(self, seconds: float = 10.0) -> None:
        """Let time pass, and everything be sampled at its end."""
        self.seconds += seconds
        self._busy += self.cpu * seconds
        if self.sampler is not None:
            self.sampler.step()
        self.history.sample()

    def report(self) -> Report:
        """Return the report of now."""
        return self.report_on(self.composite.snapshot())

    def report_on(self, snapshot: Snapshot) -> Report:
        """Return the report of a collection, with a remedy of which the test knows the words."""
        report = self.reports.report(snapshot)
        ops = (replace(op, remedy=REMEDIES.get(op.op, op.remedy)) for op in report.ops)
        return replace(report, ops=tuple(ops))

    def app(self) -> ExporterApp:
        return ExporterApp(
            self.composite,
            ("fallback",),
            shows_details=self.shows_details,
            report=self.report_on,
        )

    def close(self) -> None:
        self._lives.close()

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve it; gives the address."""
        with serving_app(self.app(), WatchedConfig(None)) as running:
            yield f"http://127.0.0.1:{running.port}/"


def armed(**header: object) -> PageFactory:
    """Return a page of a process that was armed when the scene begins."""
    second = int(START_SECOND) * SECOND_NS
    values: dict[str, object] = {
        "armed_since_ns": second,
        "last_seen_ns": second,
        "created_unix_ns": int(START_UNIX) * SECOND_NS,
        "davinci_devices": (3, 0, 0, 0),
        "mode_source": layout.MODE_SOURCES.index("NPU_FALLBACK_MODE"),
    }
    return PageFactory(**{**values, **header})


def call_site(page: PageFactory, op: str, file: str, line: int, function: str) -> None:
    """Note where an op was called first, with what."""
    row = page.op(op)
    tensor = {"tensor": [64, 151936], "dtype": "float32", "device": "npu"}
    arguments = [{"name": name, "value": tensor} for name in ("self", "other")]
    page.note(layout.NOTE_ARGUMENTS, row, {"arguments": arguments})
    site = [file, line, function]
    page.note(layout.NOTE_CALL_SITE, row, {"site": site, "stack": [site], "signature": 0})


def busy_service(scene: Scene, points: int = 90) -> tuple[PageFactory, Path]:
    """Fifteen minutes of two workers, of which the last five have more fallbacks."""
    page, other = armed(), armed()
    path, other_path = scene.live(page), scene.live(other)
    call_site(page, "aten::fmax.out", "/srv/llm/model/attention.py", 214, "forward")
    call_site(page, "aten::isin.Tensor_Tensor_out", "/srv/llm/sampling.py", 88, "stop")
    events = 0
    for point in range(points + 1):
        late = point > points * 2 // 3
        events += 800 if late else 40
        wave = math.sin(point / 4)
        scene.utilization = (
            [26 + 9 * wave, 31 - 7 * wave] if late else [72 + 9 * wave, 69 - 8 * wave]
        )
        scene.cpu = 0.71 + 0.08 * wave if late else 0.24 + 0.05 * wave
        _count(page, events, npu=0)
        _count(other, events // 2, npu=1)
        page.write(scene.folder)
        other.write(scene.folder)
        scene.pass_time()
    assert path.exists()
    assert other_path.exists()
    return page, path


def _count(page: PageFactory, events: int, npu: int) -> None:
    rows: list[tuple[str, str, int, float]] = [
        ("aten::fmax.out", "dispatcher", events, 6.4),
        ("aten::isin.Tensor_Tensor_out", "dispatcher", events // 8, 1.1),
        ("aten::_upsample_nearest_exact2d.out", "explicit_kernel", events // 40, 12.0),
        ("torchvision::nms", "dispatcher", 3, 0.4),
    ]
    for op, kind, count, milliseconds in rows:
        host_ns = int(count * milliseconds * 1e6)
        buckets = [0] * layout.DURATION_BUCKETS
        buckets[6 if milliseconds > 3 else 5] = count
        page.slot(
            op,
            kind,
            npu,
            events=count,
            bytes=(7_782_400 * count, 2_594_133 * count),
            host_ns=host_ns,
            host_ns_events=count,
            duration_ns=int(host_ns * 1.2),
            duration_buckets=tuple(buckets),
        )
    page.sync("aten::_local_scalar_dense", events // 2, npu).sync("aten::nonzero", events // 9, npu)
    page.transfer("d2h", "fallback", 7_782_400 * events, events * 2, npu)
    page.transfer("h2d", "fallback", 2_594_133 * events, events, npu)
    page.transfer("h2d", "user", 14_000_000_000, 340, npu).transfer(
        "d2h", "user", 900_000, 450, npu
    )
    page.transfer("d2h", "sync", 4 * (events // 2), events // 2, npu)
    page.shard(0, 900 * events, 700 * events)
