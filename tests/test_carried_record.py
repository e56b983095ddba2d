"""The totals file: what is written comes back, and nothing else passes for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_fallback_exporter.carried import armed, record
from npu_fallback_exporter.carried.record import Carried, decode, encode
from npu_fallback_exporter.carried.tally import Tally, tally_of_failures, tally_of_page
from npu_fallback_exporter.errors import PageError
from npu_fallback_exporter.pages.decode import decode as decode_page

from .support.page_factory import PageFactory


def _tally(factory: PageFactory) -> Tally:
    data = bytes(factory.data)
    page = decode_page(lambda offset, size: data[offset : offset + size], len(data))
    return tally_of_page(page, 7, finished=True)


def _full() -> Carried:
    page = PageFactory(boundary=2, driver_bytes=(9, 8), davinci_devices=(1 << 6, 0, 0, 0))
    page.events("aten::fmax.out", 3).events("__other__", 1).events("aten::b", 2, npu=3)
    page.sync("aten::nonzero", 5).transfer("d2h", "user", 4096, 2).shard(0, 100, 10)
    return Carried().with_merged(["ab" * 16], [_tally(page), tally_of_failures(["page", "page"])])


def _reason(data: bytes) -> str:
    with pytest.raises(PageError) as caught:
        decode(data)
    return caught.value.reason


def test_what_is_written_is_what_is_read() -> None:
    carried = _full()
    assert decode(encode(carried)) == carried


def test_counts_are_kept_by_op_kind_and_physical_npu() -> None:
    rows = _full().tally.rows
    assert rows["slot", "aten::fmax.out", "dispatcher", "6"][:5] == (3, 0, 0, 216, 72)
    assert rows["slot", "aten::b", "dispatcher", "logical-3"][0] == 2
    assert rows["kind", "dispatcher", "6"] == (4,)
    assert rows["kind", "explicit_kernel", "6"] == (0,)
    assert rows["sync", "aten::nonzero", "6"] == (5,)
    assert rows["transfer", "d2h", "user", "6"] == (4096, 2)
    assert (rows["armed",], rows["finished",], rows["failure", "page"]) == ((7,), (1,), (2,))


def _changed(**values: Any) -> bytes:
    return json.dumps({**json.loads(encode(_full())), **values}).encode()


@pytest.mark.parametrize(
    "values",
    [
        {"format": "another"},
        {"id": "x"},
        {"retired": -1},
        {"retired": 1.5},
        {"retired": True},
        {"retired": 1 << 62},
        {"rows": {}},
        {"rows": [["unknown", 1]]},
        {"rows": [[]]},
        {"rows": [["finished"]]},
        {"rows": [["finished", "1"]]},
        {"rows": [["kind", "dispatcher", "../..", 1]]},
        {"rows": [["kind", "dispatcher", "٣", 1]]},
        {"rows": [["kind", "unknown", "0", 1]]},
        {"rows": [["failure", "unknown", 1]]},
        {"rows": [["sync", "", "0", 1]]},
        {"rows": [["sync", "x" * 2000, "0", 1]]},
        {"rows": [["sync", "\ud800", "0", 1]]},
        {"first_seen_unix_ns": []},
        {"first_seen_unix_ns": {"aten::a": None}},
        {"merged": [7]},
        {"merged": "x"},
    ],
)
def test_a_file_that_no_exporter_writes_is_corrupt(values: dict[str, Any]) -> None:
    assert _reason(_changed(**values)) == "corrupt"


@pytest.mark.parametrize("data", [b"", b"\0", b"[]", b"{", b"7", b"[" * 100_000])
def test_a_file_that_is_something_else_is_corrupt(data: bytes) -> None:
    assert _reason(data) == "corrupt"


def test_a_file_of_another_version_is_told_apart() -> None:
    assert _reason(_changed(version=2)) == "version"


@given(st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=8)), max_size=5))
def test_a_damaged_file_is_decoded_or_refused_and_nothing_else_happens(
    damages: list[tuple[int, bytes]],
) -> None:
    data = bytearray(encode(_full()))
    for place, damage in damages:
        at = place % len(data)
        data[at : at + len(damage)] = damage
    try:
        decode(bytes(data))
    except PageError as error:
        assert error.reason in {"corrupt", "version"}  # noqa: PT017


def test_the_names_of_the_merged_are_the_newest_thousands() -> None:
    names = [f"{number:032x}" for number in range(record.MAX_MERGED + 10)]
    carried = Carried().with_merged(names, [])
    assert carried.retired == record.MAX_MERGED + 10
    assert carried.merged == tuple(names[10:])


def test_who_was_merged_since_is_named_as_long_as_it_fits() -> None:
    names = [f"{number:032x}" for number in range(3 * record.MAX_MERGED)]
    before = Carried().with_merged(names[:2], [])
    after = before.with_merged(names[2:5], [])
    assert after.merged_since(before) == (frozenset(names[2:5]), True)
    assert after.merged_since(after) == (frozenset(), True)
    assert after.merged_since(None) == (frozenset(names[:5]), True)
    long_after = after.with_merged(names[5:], [])
    assert long_after.merged_since(before)[1] is False


def test_ops_beyond_the_limit_go_to_other_and_are_counted() -> None:
    tally = Tally()
    for name in ("a", "b", "c"):
        tally.add(_tally(PageFactory().events(name, 5)), max_ops=2, max_rows=1000)
    rows = {key[1]: row[0] for key, row in tally.rows.items() if key[0] == "slot"}
    assert rows == {"a": 5, "b": 5, "__other__": 5}
    assert tally.rows["process",][2] == 1


def test_rows_beyond_the_limit_go_to_other() -> None:
    tally = Tally()
    tally.add(_tally(PageFactory().events("a", 1, npu=0).events("a", 1, npu=1)), 100, 1)
    assert sum(row[0] for key, row in tally.rows.items() if key[0] == "slot") == 2
    assert {key[1] for key in tally.rows if key[0] == "slot"} <= {"a", "__other__"}


@pytest.mark.parametrize(
    "data",
    [b"", b"[", b"[]", b'{"version":2,"armed_ns":{"a":1}}', b'{"version":1}', b"[" * 100_000],
)
def test_an_armed_file_that_makes_no_sense_says_nothing(data: bytes) -> None:
    assert armed.decode(data) == {}


def test_an_armed_file_gives_what_makes_sense() -> None:
    data = b'{"version":1,"armed_ns":{"a":5,"b":-1,"c":"x","d":true,"e":1e9}}'
    assert armed.decode(data) == {"a": 5}
    assert armed.decode(armed.encode({"a": 5})) == {"a": 5}
