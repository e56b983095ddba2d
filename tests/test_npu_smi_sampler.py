"""What the sampler asks when, and what a scrape then sees. No thread and no clock of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from npu_fallback_exporter.npu_smi.command import CallResult
from npu_fallback_exporter.npu_smi.diagnosis import Diagnosis, FailureReason
from npu_fallback_exporter.npu_smi.figures import ChipKey
from npu_fallback_exporter.npu_smi.sampler import NpuSmiSampler
from tests.support import npu_smi_samples as samples

INFO_8 = samples.text_of("info/910b3_23.0.7_8cards_idle.txt")
INFO_A3 = samples.text_of("info/910_93_25.2.0_A3_mixed-procs.txt")
MAP = samples.text_of("map/m_910a_6.0.RC1_doc.txt")
USAGES = samples.text_of("type/usages_910b_25.5.1.txt")
DRIVER = CallResult(stdout=samples.text_of("error/8005_ret4.txt"), exit_status=187, complete=True)
TIMEOUT = CallResult(failure=Diagnosis(FailureReason.TIMEOUT, "no answer within 10 s"))


def ok(text: str) -> CallResult:
    return CallResult(stdout=text, exit_status=0, complete=True, duration_seconds=1.2)


def usages_of(card: int) -> CallResult:
    return ok(USAGES.replace("NPU ID                         : 0", f"NPU ID : {card}"))


class World:
    """A clock and a command in the hands of the test."""

    def __init__(self, info: str = INFO_8) -> None:
        self.now = 1000.0
        self.calls: list[tuple[float, str]] = []
        self.replies: dict[str, CallResult | Callable[[], CallResult]] = {
            "info": ok(info),
            "info -m": ok(MAP),
            **{f"info -t usages -i {card}": usages_of(card) for card in range(8)},
        }
        self.cancelled = False
        self.sampler = NpuSmiSampler(
            self,
            monotonic=lambda: self.now,
            wall_clock=lambda: self.now + 1e9,
            nodes=lambda: frozenset(range(8)),
        )

    def run(self, *arguments: str) -> CallResult:
        call = " ".join(arguments)
        self.calls.append((self.now, call))
        reply = self.replies[call]
        return reply() if callable(reply) else reply

    def cancel(self) -> None:
        self.cancelled = True

    def pass_time(self, seconds: float) -> None:
        """Step whenever the sampler says that something is due, as its thread does."""
        until = self.now + seconds
        while True:
            pause = self.sampler.step()
            if self.now + pause > until:
                self.now = until
                return
            self.now += pause


def test_a_cycle_is_one_call_and_the_cards_take_turns() -> None:
    world = World()
    world.pass_time(44)
    assert world.calls == [
        (1000, "info"),
        (1000, "info -m"),
        (1005, "info -t usages -i 0"),
        (1010, "info"),
        (1015, "info -t usages -i 1"),
        (1020, "info"),
        (1025, "info -t usages -i 2"),
        (1030, "info"),
        (1035, "info -t usages -i 3"),
        (1040, "info"),
    ]


def test_each_step_makes_at_most_one_call() -> None:
    world = World()
    for _ in range(40):
        before = len(world.calls)
        world.now += world.sampler.step()
        assert len(world.calls) - before <= 1


def test_the_map_is_not_asked_where_the_table_has_physical_ids() -> None:
    world = World(INFO_A3)
    world.pass_time(30)
    assert "info -m" not in {call for _, call in world.calls}
    assert world.sampler.snapshot().labels[ChipKey(1, 1)] == "3"


def test_the_map_is_asked_again_when_the_chips_change() -> None:
    world = World()
    world.pass_time(15)
    world.replies["info"] = ok(samples.text_of("info/910b3_25.5.1_2of8_one-proc.txt"))
    world.pass_time(10)
    assert [call for _, call in world.calls].count("info -m") == 2
    assert set(world.sampler.snapshot().labels.values()) == {"0", "5"}


def test_nothing_is_shown_before_the_labels_are_decided() -> None:
    world = World()
    world.sampler.step()
    assert world.sampler.snapshot().info is None
    world.sampler.step()
    assert world.sampler.snapshot().info is not None


def test_a_sample_disappears_after_three_intervals_and_its_age_stays() -> None:
    world = World()
    world.pass_time(1)
    world.replies["info"] = TIMEOUT
    world.pass_time(29)
    assert world.sampler.snapshot().info is not None
    assert not world.sampler.snapshot().up
    world.pass_time(0.1)
    snapshot = world.sampler.snapshot()
    assert (snapshot.info, dict(snapshot.labels), dict(snapshot.usages)) == (None, {}, {})
    assert snapshot.last_success_seconds == 1e9 + 1000
    assert snapshot.trouble == "timeout: no answer within 10 s"


def test_a_thread_that_hangs_makes_the_sample_old_too() -> None:
    world = World()
    world.pass_time(1)
    world.now += 31
    assert not world.sampler.snapshot().up
    assert world.sampler.snapshot().info is None


def test_finer_figures_live_for_three_rotations() -> None:
    world = World()
    world.pass_time(6)
    world.replies["info -t usages -i 0"] = TIMEOUT
    world.pass_time(5 + 239 - 6)
    assert ChipKey(0, 0) in world.sampler.snapshot().usages
    world.pass_time(10)
    assert ChipKey(0, 0) not in world.sampler.snapshot().usages
    assert ChipKey(1, 0) in world.sampler.snapshot().usages
    assert world.sampler.snapshot().up


def test_the_pauses_grow_while_it_fails_and_one_success_ends_them() -> None:
    world = World()
    world.replies["info"] = DRIVER
    world.pass_time(260)
    assert [at - 1000 for at, _ in world.calls] == [0, 10, 30, 70, 130, 190, 250]
    world.replies["info"] = ok(INFO_A3)
    world.pass_time(90)
    assert [at - 1000 for at, call in world.calls[7:] if call == "info"] == [
        310,
        320,
        330,
        340,
        350,
    ]
    assert world.sampler.snapshot().up


def test_no_finer_figures_are_asked_for_while_the_table_fails() -> None:
    world = World()
    world.replies["info"] = DRIVER
    world.pass_time(300)
    assert {call for _, call in world.calls} == {"info"}


@pytest.mark.parametrize("reason", list(FailureReason))
def test_each_failure_is_counted_by_its_reason(reason: FailureReason) -> None:
    world = World()
    assert dict(world.sampler.snapshot().failures) == dict.fromkeys(FailureReason, 0)
    world.replies["info"] = CallResult(failure=Diagnosis(reason, "words"))
    world.pass_time(31)
    expected = dict.fromkeys(FailureReason, 0) | {reason: 3}
    assert dict(world.sampler.snapshot().failures) == expected


def test_an_error_on_stdout_with_status_0_is_a_failure() -> None:
    world = World()
    world.replies["info"] = ok(samples.text_of("error/8020_then_9005.txt"))
    world.pass_time(1)
    assert world.sampler.snapshot().failures[FailureReason.BUSY] == 1


def test_a_table_that_comes_with_an_error_is_a_sample() -> None:
    world = World()
    world.replies["info"] = CallResult(
        stdout="DrvMngGetConsoleLogLevel failed. (ret=4)\n" + INFO_A3, exit_status=187
    )
    world.pass_time(1)
    assert world.sampler.snapshot().up
    assert sum(world.sampler.snapshot().failures.values()) == 0


def test_the_log_names_the_dcmi_code_once_and_the_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "npu_fallback_exporter")
    world = World(INFO_A3)
    world.pass_time(1)
    world.replies["info"] = DRIVER
    world.pass_time(100)
    world.replies["info"] = ok(INFO_A3)
    world.pass_time(100)
    lines = [record.message for record in caplog.records]
    assert len(lines) == 2
    assert "DCMI code -8005" in lines[0]
    assert "see whether the driver is loaded" in lines[0]
    assert lines[1] == "npu-smi answers again"


def test_figures_of_another_card_than_the_one_asked_for_are_not_taken() -> None:
    world = World()
    world.replies["info -t usages -i 0"] = usages_of(3)
    world.pass_time(6)
    assert dict(world.sampler.snapshot().usages) == {}


def test_a_card_without_finer_figures_is_left_in_peace() -> None:
    world = World()
    unsupported = ok("This device does not support querying usages.\n")
    for card in range(8):
        world.replies[f"info -t usages -i {card}"] = unsupported
    world.pass_time(600)
    assert sum("usages" in call for _, call in world.calls) == 8
    assert sum(world.sampler.snapshot().failures.values()) == 0


def test_undecided_chips_make_it_ask_for_the_map_again_later() -> None:
    world = World(samples.text_of("info/310_21.0.3.1_4cards_16chips.txt"))
    world.replies["info -m"] = TIMEOUT
    for card in (1, 3, 4, 6):
        world.replies[f"info -t usages -i {card}"] = TIMEOUT
    world.pass_time(301)
    assert [at - 1000 for at, call in world.calls if call == "info -m"] == [0, 300]


def test_a_mistake_in_a_step_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    again = threading.Event()
    calls: list[str] = []

    class Broken:
        def run(self, *arguments: str) -> CallResult:
            calls.append(" ".join(arguments))
            if len(calls) == 2:
                again.set()
            raise RuntimeError("a mistake")

        def cancel(self) -> None:
            return

    sampler = NpuSmiSampler(Broken(), interval_seconds=0.01)
    sampler.start()
    assert again.wait(10)
    assert sampler.stop()
    assert "a mistake" in caplog.text


def test_stopping_cancels_the_call_and_counts_nothing() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    class Hanging:
        def run(self, *arguments: str) -> CallResult:
            begun.set()
            assert cancelled.wait(10)
            return TIMEOUT

        def cancel(self) -> None:
            cancelled.set()

    sampler = NpuSmiSampler(Hanging())
    sampler.start()
    assert begun.wait(10)
    assert sampler.stop(1.0)
    assert sum(sampler.snapshot().failures.values()) == 0
