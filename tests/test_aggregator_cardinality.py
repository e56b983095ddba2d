"""How many ops get series of their own."""

from __future__ import annotations

from pathlib import Path

from npu_fallback_exporter.aggregator import Aggregator
from npu_fallback_exporter.pages.arm_failure import ArmFailures
from npu_fallback_exporter.pages.discovery import scan
from npu_fallback_exporter.totals import Totals

from .support.page_factory import PageFactory


def _observe(aggregator: Aggregator, folder: Path) -> Totals:
    aggregator.observe(scan([folder], ArmFailures()), 0)
    return aggregator.totals


def _events_by_op(totals: Totals) -> dict[str, int]:
    return {op: slot.events for (op, _, _), slot in totals.slots.items()}


def test_ops_beyond_the_limit_share_op_other_and_are_counted(tmp_path: Path) -> None:
    page = PageFactory()
    for number in range(5):
        page.slot(f"aten::op{number}", first_seen_unix_ns=number, events=10)
    page.write(tmp_path)
    totals = _observe(Aggregator(max_ops=3), tmp_path)
    assert _events_by_op(totals) == {
        "aten::op0": 10,
        "aten::op1": 10,
        "aten::op2": 10,
        "__other__": 20,
    }
    assert totals.ops_overflowed == 2


def test_the_op_that_was_seen_first_in_any_process_comes_first(tmp_path: Path) -> None:
    PageFactory().slot("aten::late", first_seen_unix_ns=9, events=1).write(tmp_path)
    PageFactory().slot("aten::early", first_seen_unix_ns=5, events=1).write(tmp_path)
    assert "aten::early" in _events_by_op(_observe(Aggregator(max_ops=1), tmp_path))


def test_a_label_once_given_stays_when_an_earlier_op_appears(tmp_path: Path) -> None:
    aggregator = Aggregator(max_ops=1)
    PageFactory().slot("aten::late", first_seen_unix_ns=9, events=1).write(tmp_path)
    _observe(aggregator, tmp_path)
    PageFactory().slot("aten::early", first_seen_unix_ns=5, events=1).write(tmp_path)
    assert _events_by_op(_observe(aggregator, tmp_path)) == {"aten::late": 1, "__other__": 1}


def test_ops_that_overflowed_in_their_process_and_here_are_added(tmp_path: Path) -> None:
    page = PageFactory(ops_overflowed=4).events("aten::a", 1).events("aten::b", 1)
    page.write(tmp_path)
    assert _observe(Aggregator(max_ops=1), tmp_path).ops_overflowed == 5


def test_op_other_of_a_page_takes_no_place_of_another_op(tmp_path: Path) -> None:
    PageFactory().events("__other__", 1).events("aten::a", 1).write(tmp_path)
    assert _events_by_op(_observe(Aggregator(max_ops=1), tmp_path)) == {
        "__other__": 1,
        "aten::a": 1,
    }


def test_256_ops_in_each_of_8_processes_stay_within_the_limit(tmp_path: Path) -> None:
    for process in range(8):
        page = PageFactory()
        for number in range(256):
            page.slot(f"p{process}::op{number}", events=1)
        page.write(tmp_path)
    totals = _observe(Aggregator(), tmp_path)
    assert len(_events_by_op(totals)) == 101
    assert sum(slot.events for slot in totals.slots.values()) == 8 * 256
    assert totals.ops_overflowed == 8 * 256 - 100


def test_folding_gives_ops_one_npu_and_leaves_the_sums_apart(tmp_path: Path) -> None:
    page = PageFactory(davinci_devices=(3, 0, 0, 0))
    page.events("aten::a", 1, npu=0).events("aten::a", 2, npu=1).sync("aten::nonzero", 4, npu=1)
    page.write(tmp_path)
    totals = _observe(Aggregator(fold_npu=True), tmp_path)
    assert [(labels, slot.events) for labels, slot in totals.slots.items()] == [
        (("aten::a", "dispatcher", "all"), 3)
    ]
    assert totals.syncs == {("aten::nonzero", "all"): 4}
    assert totals.kind_events["dispatcher", "1"] == 2
