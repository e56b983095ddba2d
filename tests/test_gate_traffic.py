"""Which scrapes the gate counts, and what it makes of them."""

from __future__ import annotations

import math

from npu_fallback_exporter.gate import readings
from npu_fallback_exporter.gate.readings import Counter, counter_of
from npu_fallback_exporter.gate.traffic import Side, Timed, Window, side_of

OP = Counter("npu_fallback_events_total", "aten::fmax.out")


def scrape(
    time: float, operators: float, events: float = 0.0, *, processes: int = 1, finished: int = 0
) -> Timed:
    values = {
        readings.OPERATORS: operators,
        readings.ARMED_SECONDS: time,
        readings.PROCESSES: float(processes),
        readings.PROCESSES_FINISHED: float(finished),
    }
    return Timed(time, {**values, OP: events} if events else values)


def side(*scrapes: Timed, window: Window | None = None) -> Side:
    return side_of([scrapes], window or Window())


def totals(found: Side) -> tuple[float, float]:
    return found.total(readings.OPERATORS), found.total(OP)


def test_series_of_one_op_add_up_and_other_labels_do_not_matter() -> None:
    labels = {"op": "aten::fmax.out", "kind": "dispatcher", "npu": "3"}
    assert counter_of("npu_fallback_events_total", labels) == OP
    assert counter_of("npu_syncs_total", {"op": "aten::nonzero"}) == readings.SYNCS


def test_a_series_that_begins_at_three_has_risen_by_three() -> None:
    assert totals(side(scrape(0, 0), scrape(15, 100, 3), scrape(30, 200, 3))) == (200, 3)


def test_what_the_first_scrape_has_already_is_no_rise() -> None:
    assert totals(side(scrape(0, 500, 30), scrape(15, 600, 30))) == (100, 0)


def test_an_interval_in_which_a_counter_fell_is_left_out() -> None:
    found = side(scrape(0, 500, 30), scrape(15, 600, 31), scrape(30, 50, 7), scrape(45, 150, 8))
    assert totals(found) == (200, 2)
    assert found.left_out == 1


def test_history_goes_on_over_a_restart() -> None:
    found = side(scrape(0, 500, 30), scrape(15, 600, 31), scrape(30, 50, 7), scrape(45, 150, 8))
    assert (found.history[readings.OPERATORS], found.history[OP]) == (750, 39)


def test_scrapes_before_the_window_tell_of_history_only() -> None:
    found = side(scrape(0, 0), scrape(15, 100, 9), scrape(30, 200, 9), window=Window(start=15))
    assert (totals(found), found.known(OP.name)) == ((100, 0), {OP.of})


def test_an_exporter_that_is_first_seen_in_the_window_warms_up() -> None:
    scrapes = [scrape(time, time * 10, 1 if time > 30 else 0) for time in range(0, 105, 15)]
    found = side(*scrapes, window=Window(start=-300, warmup=60))
    assert totals(found) == (300, 0)
    assert found.left_out == 4


def test_a_process_that_starts_makes_its_exporter_warm_up_again() -> None:
    scrapes = [scrape(0, 0), scrape(15, 10), scrape(30, 20, 30, processes=2)]
    scrapes += [scrape(45, 30, 60, processes=2), scrape(60, 40, 60, processes=2)]
    window = Window(start=0, warmup=15, ready=0)
    assert totals(side(*scrapes, window=window)) == (20, 0)


def test_a_worker_that_is_replaced_is_a_start_too() -> None:
    scrapes = [scrape(time, time, 30, finished=int(time > 0)) for time in range(0, 60, 15)]
    window = Window(start=0, warmup=15, ready=0)
    assert totals(side(*scrapes, window=window)) == (15, 0)


def test_a_worker_that_only_ends_is_none() -> None:
    scrapes = [scrape(0, 0, processes=2), scrape(15, 10, 1, processes=1, finished=1)]
    assert totals(side(*scrapes, window=Window(start=0, warmup=15, ready=0))) == (10, 1)


def test_without_warm_up_a_start_does_not_matter() -> None:
    scrapes = [scrape(0, 0), scrape(15, 10, 30, processes=2)]
    assert totals(side(*scrapes)) == (10, 30)


def test_whatever_ran_when_all_was_ready_has_warmed_up() -> None:
    scrapes = [scrape(0, 0), scrape(15, 10, 1), scrape(30, 20, 2)]
    assert totals(side(*scrapes, window=Window(start=15, warmup=300, ready=15))) == (10, 1)


def test_what_is_not_a_number_is_told() -> None:
    found = side(scrape(0, 0), scrape(15, math.nan), scrape(30, 100))
    assert found.not_numbers == {"npu_operators_total"}


def test_of_an_exporter_without_armed_process_only_its_arm_failures_are_known() -> None:
    failed = Counter("npu_fallback_arm_failures_total", "no_hook")
    found = side(Timed(0, {failed: 1.0, readings.OPERATORS: 5.0}))
    assert (found.instances, found.history) == (0, {failed: 1.0})


def test_exporters_add_up() -> None:
    found = side_of([[scrape(0, 0), scrape(15, 10)], [scrape(0, 7), scrape(15, 10, 1)]], Window())
    assert (found.instances, totals(found)) == (2, (13, 1))
