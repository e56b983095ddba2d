"""What may happen to a canary, and what each judge of it must say."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.canary_pods import BASELINE_SECONDS, FMAX, LOADING, NEW_OP, Behaviour, Pod
from tests.support.canary_tools import CANARY
from tests.support.recorded import Recording, prometheus_holding

#: Revisions of the two sides, as labels.
BASELINE, CANDIDATE = "6d5fb8c4", "7c9f64bd"
#: Requests that a side gets in its life so that 10,000 fall into the window, and so that it is
#: nearly idle.
BUSY_BASELINE, BUSY, IDLE = 78_000, 14_667, 22


@dataclass(frozen=True)
class Scenario:
    """One row of the truth table.

    Attributes:
        name: of the row, and the namespace in which it happens.
        baseline: its pods.
        candidate: its pods.
        gate: the verdict of ``gate``.
        reason: text that stands in one of its reasons.
        queries: what Argo's measurements of the queries come to; Flagger promotes if they are
            successful.
        flags: of ``gate``.
        allow: ops that the queries leave out.
    """

    name: str
    gate: str
    queries: str
    reason: str = ""
    candidate: Sequence[dict[str, object]] = ({},)
    baseline: Sequence[dict[str, object]] = ({},)
    flags: Sequence[str] = ()
    allow: str = ""

    def record(self, recording: Recording) -> None:
        """Let it happen."""
        sides = (
            (self.baseline, BASELINE, "api-primary", BUSY_BASELINE, BASELINE_SECONDS),
            (self.candidate, CANDIDATE, "api", BUSY, 1500),
        )
        for pods, revision, workload, requests, age in sides:
            for number, differs in enumerate(pods):
                labels = {
                    "namespace": self.name,
                    "job": "npu-fallback-exporter",
                    "workload": workload,
                    "revision": revision,
                    "pod": f"{workload}-{revision}-x{number}",
                    "instance": f"10.0.{'0' if revision == BASELINE else '1'}.{number}:10837",
                }
                settings: dict[str, object] = {"requests": requests, "age": age, **differs}
                Pod(labels, **settings).record(recording)  # type: ignore[arg-type]


def _does(**differs: object) -> dict[str, object]:
    return {"behaviour": Behaviour(**differs)}  # type: ignore[arg-type]


_NEW = _does(per_1000={FMAX: 1000, NEW_OP: 1})
_LOADS_SOMETHING_NEW = _does(loading={LOADING: 30, NEW_OP: 30})

SCENARIOS = (
    Scenario("clean", "pass", "Successful"),
    Scenario(
        "worse",
        "fail",
        "Failed",
        f"fallbacks of {FMAX}: 12.5 per 1,000 operators, +2.5 against",
        [_does(per_1000={FMAX: 1250})],
    ),
    Scenario("new-op", "fail", "Failed", f"{NEW_OP} falls back in the candidate, +0.01 ", [_NEW]),
    Scenario(
        "new-op-allowed",
        "pass",
        "Successful",
        candidate=[_NEW],
        flags=["--allow", "torchvision::nms,aten::lgamma*"],
        allow="torchvision::nms|aten::lgamma.*",
    ),
    Scenario(
        "new-op-beside-a-young-baseline",
        "fail",
        "Failed",
        "(10 in 1,000,000), and never did in the baseline (0 in 1,4",
        [_NEW],
        [{"age": 1500, "requests": BUSY}],
    ),
    Scenario(
        "new-op-begins-at-three",
        "fail",
        "Failed",
        f"{NEW_OP} falls back in the candidate",
        [{"thrice": (495, 300, 105)}],
    ),
    Scenario(
        "no-traffic", "inconclusive", "Inconclusive", "candidate: 0 operators", [{"requests": 0}]
    ),
    Scenario(
        "exporter-missing",
        "inconclusive",
        "Inconclusive",
        "no data of a hooked process (10.0.1.0:10837 is down)",
        [{"down_from": 9999}],
    ),
    Scenario("candidate-missing", "inconclusive", "Inconclusive", "candidate: no data", []),
    Scenario("baseline-missing", "inconclusive", "Inconclusive", "baseline: no data", baseline=[]),
    Scenario(
        "not-a-number",
        "inconclusive",
        "Inconclusive",
        "not a number in npu_operators_total",
        [{"not_a_number": "npu_operators_total"}],
    ),
    Scenario(
        "tiny", "inconclusive", "Inconclusive", "1,500 operators of the 3,000", [{"requests": IDLE}]
    ),
    Scenario("loading", "pass", "Successful", candidate=[_LOADS_SOMETHING_NEW]),
    Scenario(
        "pod-restarts",
        "pass",
        "Inconclusive",
        candidate=[{**_LOADS_SOMETHING_NEW, "restarts": (480,)}],
    ),
    Scenario(
        "worker-restarts",
        "pass",
        "Inconclusive",
        candidate=[{**_LOADS_SOMETHING_NEW, "worker_restarts": (480,)}],
    ),
    Scenario(
        "one-of-two-restarts",
        "pass",
        "Successful",
        candidate=[{**_LOADS_SOMETHING_NEW, "restarts": (630,)}, {}],
    ),
    Scenario(
        "scaled-up",
        "pass",
        "Successful",
        candidate=[{}, {**_LOADS_SOMETHING_NEW, "age": 600}],
    ),
    Scenario("fails-and-restarts", "fail", "Failed", NEW_OP, [{**_NEW, "restarts": (480,)}, _NEW]),
    Scenario("slower", "fail", "Failed", "host time of fallbacks", [_does(host_seconds=2e-3)]),
    Scenario("more-bytes", "fail", "Failed", "2,000 per operator, +1,000", [_does(bytes=200_000)]),
    Scenario("more-waits", "fail", "Failed", "waits for a value: 30 per", [_does(syncs=3)]),
    Scenario("refuses", "fail", "Failed", f"{NEW_OP} is refused", [_does(refused={NEW_OP: 2})]),
    Scenario(
        "refuses-like-the-baseline",
        "pass",
        "Successful",
        candidate=[_does(refused={NEW_OP: 2})],
        baseline=[_does(refused={NEW_OP: 2})],
    ),
    Scenario(
        "one-of-two-down",
        "inconclusive",
        "Successful",
        "10.0.1.1:10837 cannot be scraped",
        [{}, {"down_from": 400}],
    ),
    Scenario("not-armed", "inconclusive", "Successful", "no_hook", [{"arm_failures": 1}]),
    Scenario(
        "on-the-cpu", "inconclusive", "Successful", "none on the device", [_does(on_device=False)]
    ),
)


@dataclass(frozen=True)
class Canaries:
    """Where to ask.

    Attributes:
        address: host:port of a Prometheus that has seen all scenarios.
        end: Unix time of the last scrapes.
        ruled: Unix time at which the recording rules had run; they are old soon after.
    """

    address: str
    end: float
    ruled: float


@contextmanager
def observed(folder: Path) -> Iterator[Canaries]:
    """Let all scenarios happen, and run a Prometheus that has seen them until the block ends."""
    recording = Recording()
    for scenario in SCENARIOS:
        scenario.record(recording)
    with prometheus_holding(recording, CANARY / "recording-rules.yaml", folder) as address:
        yield Canaries(address, recording.end, time.time())
