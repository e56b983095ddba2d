"""Before and after: rates, not counts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from npu_fallback_exporter.report import diff_html
from npu_fallback_exporter.report.diff import OpChange, as_json, compare, summary
from npu_fallback_exporter.report.model import OpCost, Report

from .test_report_output import Elements, shown_comparison


def report(*ops: OpCost, operators: int | None = 100_000, armed: float = 100.0) -> Report:
    return Report(1e9, "pages", "0", armed_seconds=armed, operators=operators, ops=ops, processes=1)


def op(name: str, events: int, host_seconds: float | None = None) -> OpCost:
    seconds = events * 0.001 if host_seconds is None else host_seconds
    return OpCost(name, "dispatcher", events, host_seconds=seconds, duration_seconds=seconds)


def changes(before: Report, after: Report) -> dict[str, str]:
    return {one.op: one.change for one in compare(before, after).ops}


def only(before: Report, after: Report) -> OpChange:
    (one,) = compare(before, after).ops
    return one


def test_what_appeared_and_what_vanished_is_told() -> None:
    before, after = report(op("a", 5), op("both", 100)), report(op("b", 5), op("both", 100))
    assert changes(before, after) == {"a": "vanished", "b": "appeared", "both": "same"}


def test_twice_the_events_in_twice_the_traffic_are_the_same() -> None:
    after = report(op("a", 2000), operators=200_000, armed=200.0)
    one = only(report(op("a", 1000)), after)
    assert (one.change, one.ratio) == ("same", 1.0)


def test_twice_the_events_in_the_same_traffic_grew() -> None:
    one = only(report(op("a", 1000)), report(op("a", 2000)))
    assert (one.change, one.ratio) == ("grew", 2.0)
    assert (one.before.per_thousand, one.after.per_thousand) == (10.0, 20.0)
    assert (one.before.per_second, one.after.per_second) == (10.0, 20.0)


def test_what_chance_explains_is_the_same() -> None:
    assert only(report(op("a", 10, 0.1)), report(op("a", 13, 0.1))).change == "same"


def test_many_events_are_compared_without_statistics_that_take_long() -> None:
    one = only(report(op("a", 50_000_000)), report(op("a", 60_000_000)))
    assert one.change == "grew"
    assert one.ratio == pytest.approx(1.2)


def test_the_same_events_that_take_longer_grew() -> None:
    one = only(report(op("a", 1000, 1.0)), report(op("a", 1000, 3.0)))
    assert (one.change, one.ratio) == ("grew", 1.0)
    assert one.share_difference == pytest.approx(0.02)


def test_without_an_operator_count_rates_are_per_time() -> None:
    before = report(op("a", 1000), operators=None)
    after = report(op("a", 1000), operators=None, armed=200.0)
    one = only(before, after)
    assert (one.change, one.ratio, one.after.per_thousand) == ("shrank", 0.5, None)


def test_nothing_can_be_said_of_sides_without_time() -> None:
    one = only(report(op("a", 1), operators=0, armed=0.0), report(op("a", 1)))
    assert (one.change, one.ratio, one.before.share) == ("same", None, None)


def test_the_largest_change_of_time_comes_first() -> None:
    before = report(op("small", 10, 0.1), op("large", 10, 50.0))
    after = report(op("small", 10, 5.0), op("new", 1, 1.0))
    assert [one.op for one in compare(before, after).ops] == ["large", "small", "new"]


def test_ops_that_were_only_refused_are_no_change() -> None:
    refused = replace(op("a", 0, 0.0), blocked=5)
    assert compare(report(refused), report()).ops == ()


def test_json_has_both_sides_and_every_op() -> None:
    content = json.loads(
        json.dumps(as_json(compare(report(op("a", 5)), report(op("b", 7)))), allow_nan=False)
    )
    assert content["format"] == "npu-fallback-report-diff"
    assert content["before"]["events"] == 5
    assert content["after"]["share"] == pytest.approx(7e-5)
    assert {one["op"]: one["change"] for one in content["ops"]} == {
        "a": "vanished",
        "b": "appeared",
    }


BEFORE = report(op("aten::fmax.out", 2000, 40.0), op("aten::nonzero_x", 10, 0.1))
AFTER = report(op("aten::nonzero_x", 10, 0.1), op("aten::isin", 5, 0.2), operators=120_000)

#: Without the blanks between columns.
PLAIN = """\
Before and after: 1 operator appeared, 1 operator vanished.
before: 2,010 events, 20.1 per 1,000, 40.1% of the time \
(armed 100.00 s, 100,000 operators, until 2001-09-09 01:46:40 UTC)
after : 15 events, 0.125 per 1,000, 0.3% of the time \
(armed 100.00 s, 120,000 operators, until 2001-09-09 01:46:40 UTC)

operator change per 1,000 operators per second share of time bytes per 1,000 mean
aten::fmax.out vanished 20.0 → 0 20.0 → 0 40.0% → 0.0% 0 B → 0 B 20.0 ms → –
aten::isin appeared 0 → 0.0417 0 → 0.0500 0.0% → 0.2% 0 B → 0 B – → 40.0 ms
aten::nonzero_x same ×0.833 0.100 → 0.0833 0.100 → 0.100 0.1% → 0.1% 0 B → 0 B \
10.0 ms → 10.0 ms
"""


def test_plain_lines_are_what_they_are() -> None:
    told = [" ".join(line.split()) for line in shown_comparison(BEFORE, AFTER).splitlines()]
    assert told == PLAIN.splitlines()


def test_html_is_well_formed() -> None:
    document = diff_html.document(compare(BEFORE, AFTER))
    assert "svg" in Elements(document).names
    assert "20.0 → 0" in document


def test_the_summary_of_no_change_says_so() -> None:
    assert summary(compare(BEFORE, BEFORE)) == "no operator changed."
