"""The thread that looks every ten seconds."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from ..collectors.fallback import FallbackCollector
from ..collectors.npu_smi import utilizations
from ..host import HostCpu
from ..npu_smi.sampler import NpuSmiSampler
from ..totals import Totals
from .series import History, Moment, OpKey, Ring

INTERVAL_SECONDS = 10.0
_NS = 1e-9

_log = logging.getLogger(__name__)


class HistorySampler:
    """Keeps the history of one exporter while the block runs.

    Each interval costs one look at the pages, and none where a scrape has looked within half an
    interval. No family is built. A scrape waits for it at most as for another scrape's look.

    Args:
        fallback: what the hooks count.
        npu_smi: the last sample of the devices; None: it is not asked for.
        interval: seconds between moments.
        cpu: utilization of the CPUs; of its own, so that no scrape's window is cut short.
        wall_clock, monotonic: seconds.
    """

    def __init__(
        self,
        fallback: FallbackCollector,
        npu_smi: NpuSmiSampler | None = None,
        *,
        interval: float = INTERVAL_SECONDS,
        cpu: HostCpu | None = None,
        wall_clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fallback = fallback
        self._npu_smi = npu_smi
        self._interval = interval
        self._cpu = cpu or HostCpu()
        self._wall_clock = wall_clock
        self._monotonic = monotonic
        self._ring = Ring()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def __enter__(self) -> HistorySampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(1.0)

    def history(self) -> History:
        """Return the last 15 minutes. May be called from any thread."""
        with self._lock:
            return self._ring.history()

    def sample(self) -> None:
        """Take one moment."""
        age, (armed, operators, events, host) = self._fallback.read(_counts, self._interval / 2)
        host_cpu, container_cpu = self._cpu.sample()
        npu = utilizations(self._npu_smi.snapshot()) if self._npu_smi is not None else {}
        moment = Moment(
            unix=self._wall_clock() - age,
            monotonic=self._monotonic() - age,
            armed_seconds=armed,
            operators=operators,
            events=events,
            host_seconds=host,
            npu=npu,
            host_cpu=host_cpu,
            container_cpu=container_cpu,
        )
        with self._lock:
            self._ring.add(moment)

    def _run(self) -> None:
        failed = ""
        while True:
            try:
                self.sample()
                failed = ""
            except Exception as error:  # the page lacks a point; a scrape will say why
                if failed != str(error):
                    failed = str(error)
                    _log.warning("history lacks a point: %s: %s", type(error).__name__, error)
            if self._ended.wait(self._interval):
                return


def _counts(totals: Totals) -> tuple[float, int, dict[OpKey, int], dict[OpKey, float]]:
    events: Counter[OpKey] = Counter()
    host_ns: Counter[OpKey] = Counter()
    for (op, kind, _), slot in totals.slots.items():
        events[op, kind] += slot.events
        host_ns[op, kind] += slot.host_ns
    host = {key: number * _NS for key, number in host_ns.items()}
    return totals.armed_ns * _NS, totals.operators, dict(events), host
