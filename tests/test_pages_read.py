"""Reading one page."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu_fallback_exporter.errors import PageError
from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.pages.decode import decode
from npu_fallback_exporter.pages.model import Page, SlotKey, SyncKey, TransferKey
from npu_fallback_exporter.pages.page import REASONS, read_page

from .support.page_factory import PageFactory, writer_of


def _decode(data: bytes | bytearray) -> Page:
    return decode(lambda offset, size: bytes(data[offset : offset + size]), len(data))


def _reason(data: bytes | bytearray) -> str:
    with pytest.raises(PageError) as caught:
        _decode(data)
    return caught.value.reason


def _reason_of_file(path: Path) -> str:
    with pytest.raises(PageError) as caught:
        read_page(str(path))
    return caught.value.reason


def test_a_page_says_who_wrote_it() -> None:
    page = _decode(
        PageFactory(
            boot_id=b"boot", pid_namespace=7, start_ticks=8, random=bytes(range(16)), pid=9
        ).data
    )
    assert (page.identity.boot_id, page.identity.pid_namespace) == ("boot", 7)
    assert (page.identity.start_ticks, page.identity.random, page.pid) == (8, bytes(range(16)), 9)


def test_a_page_says_the_mode_in_force_and_where_it_came_from() -> None:
    page = _decode(PageFactory(mode=2, mode_source=3, track=1, boundary=2).data)
    assert (page.mode, page.mode_source) == ("strict", "TORCH_NPU_CPU_FALLBACK")
    assert (page.track, page.boundary) == ("fallbacks", "full")


def test_a_slot_is_read_with_all_its_counters() -> None:
    factory = PageFactory().slot(
        "aten::fmax.out",
        npu=3,
        events=2,
        blocked=3,
        errors=4,
        bytes=(72, 24),
        host_ns=5,
        host_ns_events=6,
        duration_ns=7,
        duration_buckets=tuple(range(11)),
    )
    slots = _decode(factory.data).slots
    assert slots == {
        SlotKey("aten::fmax.out", "dispatcher", 3): (2, 3, 4, 72, 24, 5, 6, 7, *range(11))
    }


def test_events_without_a_slot_of_their_own_are_read_from_op_other() -> None:
    factory = PageFactory().events("__other__", 4, npu=127, kind="explicit_kernel")
    (key, counters), *rest = _decode(factory.data).slots.items()
    assert (key, counters.events, rest) == (("__other__", "explicit_kernel", 127), 4, [])


def test_syncs_transfers_and_thread_shards_are_read() -> None:
    factory = PageFactory().sync("aten::nonzero", 5, npu=1)
    factory.transfer("h2d", "user", 4096, 1, npu=127).shard(0, 10, 1).shard(15, 20, 2)
    page = _decode(factory.data)
    assert page.syncs == {SyncKey("aten::nonzero", 1): 5}
    assert page.transfers == {TransferKey("h2d", "user", 127): (4096, 1)}
    assert (page.counters.operators, page.counters.device_allocations) == (30, 3)


def test_davinci_numbers_up_to_255_are_read() -> None:
    page = _decode(PageFactory(davinci_devices=(1 << 63 | 1, 0, 0, 1 << 63)).data)
    assert page.chips.davinci == (0, 63, 255)


def test_an_unset_an_empty_and_a_lost_visible_list_differ() -> None:
    unset, empty, lost = (
        _decode(PageFactory(visible_devices_set=state).data).chips for state in (0, 1, 2)
    )
    assert (unset.visible_devices, empty.visible_devices, lost.visible_devices) == (None, "", None)
    assert [chips.visible_devices_lost for chips in (unset, empty, lost)] == [False, False, True]


def test_a_slot_whose_key_is_not_there_yet_is_left_out() -> None:
    factory = PageFactory().events("aten::fmax.out", 1)
    factory.set(general_slots=2)
    assert len(_decode(factory.data).slots) == 1


def test_an_op_row_newer_than_the_header_is_found() -> None:
    factory = PageFactory().events("aten::fmax.out", 1)
    factory.set(op_rows=1)
    assert list(_decode(factory.data).slots) == [("aten::fmax.out", "dispatcher", 0)]


def test_an_op_name_that_is_not_utf8_stays_distinct() -> None:
    factory = PageFactory().slot(b"a\xff", events=1).slot(b"a\xfe", events=2)
    names = {key.op: slot.events for key, slot in _decode(factory.data).slots.items()}
    assert names == {"a\\xff": 1, "a\\xfe": 2}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"magic": b"somebody"}, "magic"),
        ({"layout_version": 2}, "version"),
        ({"page_bytes": 5}, "corrupt"),
        ({"pid": 0}, "corrupt"),
        ({"pid": -3}, "corrupt"),
        ({"mode": 3}, "corrupt"),
        ({"mode_source": 6}, "corrupt"),
        ({"track": 2}, "corrupt"),
        ({"boundary": 3}, "corrupt"),
        ({"max_ops": 512}, "corrupt"),
        ({"op_rows": 513}, "corrupt"),
        ({"general_slots": 769}, "corrupt"),
        ({"visible_devices_set": 3}, "corrupt"),
        ({"cann_version": b"8.5\0rest"}, "corrupt"),
        ({"driver_bytes": (1 << 62, 0)}, "corrupt"),
        ({"armed_ns": 1 << 63}, "corrupt"),
    ],
)
def test_a_header_that_no_server_writes_is_refused(header: dict[str, object], reason: str) -> None:
    assert _reason(PageFactory().set(**header).data) == reason


@pytest.mark.parametrize(
    "key",
    [
        layout.row_key(1, 0, 128),
        layout.row_key(1, 2, 0),
        layout.row_key(512, 0, 0),
        layout.row_key(5, 0, 0),  # an op row without a name
        layout.row_key(1, 0, 0) | 1 << 40,
        layout.row_key(1, 0, 0) & ~(1 << 63),
    ],
)
def test_a_slot_key_that_no_server_writes_is_refused(key: int) -> None:
    factory = PageFactory().events("aten::fmax.out", 1)
    start = layout.PAGE.offsets["slots"]
    factory.data[start : start + 8] = key.to_bytes(8, "little")
    assert _reason(factory.data) == "corrupt"


def test_an_op_name_longer_than_its_row_is_refused() -> None:
    factory = PageFactory().events("aten::fmax.out", 1)
    start = layout.PAGE.offsets["ops"] + layout.OP_ROW.size
    factory.data[start : start + 4] = (169).to_bytes(4, "little")
    assert _reason(factory.data) == "corrupt"


@pytest.mark.parametrize("size", [1, 8, 100, 4096, layout.PAGE_BYTES - 1])
def test_a_page_that_was_cut_is_truncated(size: int) -> None:
    assert _reason(PageFactory().data[:size]) == "truncated"


def test_a_file_without_bytes_is_empty() -> None:
    assert _reason(b"") == "empty"


@given(st.binary(max_size=8192))
def test_random_bytes_are_refused_and_nothing_else_happens(data: bytes) -> None:
    assert _reason(data) in REASONS


_REGIONS = st.sampled_from(
    [
        (0, layout.HEADER.size),
        (layout.PAGE.offsets["shards"], 2048),
        (layout.PAGE.offsets["transfers"], 1024),
        (layout.PAGE.offsets["syncs"], 256),
        (layout.PAGE.offsets["ops"], 1024),
        (layout.PAGE.offsets["slots"], 1024),
        (layout.PAGE.offsets["slots"] + layout.GENERAL_SLOTS * layout.SLOT.size, 1024),
    ]
)


@settings(max_examples=300)
@given(st.lists(st.tuples(_REGIONS, st.integers(0, 4095), st.binary(max_size=24)), max_size=6))
def test_a_damaged_page_is_decoded_or_refused_and_nothing_else_happens(
    damages: list[tuple[tuple[int, int], int, bytes]],
) -> None:
    factory = PageFactory().events("aten::fmax.out", 3).events("__other__", 1)
    factory.sync("aten::nonzero", 5).transfer("d2h", "user", 4, 1)
    for (start, size), offset, data in damages:
        at = start + offset % size
        factory.data[at : at + len(data)] = data
    with suppress(PageError):
        _decode(factory.data)


def test_a_page_is_live_while_its_writer_holds_the_lock(tmp_path: Path) -> None:
    path = PageFactory().write(tmp_path)
    with writer_of(path):
        assert read_page(str(path)).live
    assert not read_page(str(path)).live


def test_a_page_that_its_reader_opened_and_closed_stays_live(tmp_path: Path) -> None:
    path = PageFactory().write(tmp_path)
    with writer_of(path):
        read_page(str(path))
        assert read_page(str(path)).live


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.page"
    link.symlink_to(PageFactory().write(tmp_path))
    assert _reason_of_file(link) == "not_regular"


def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.page"
    os.mkfifo(fifo)
    assert _reason_of_file(fifo) == "not_regular"


def test_a_socket_and_a_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder.page"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.page"))
        assert _reason_of_file(tmp_path / "socket.page") == "not_regular"
    assert _reason_of_file(folder) == "not_regular"


def test_a_file_that_went_away_has_vanished(tmp_path: Path) -> None:
    assert _reason_of_file(tmp_path / "gone.page") == "vanished"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without the right")
def test_a_page_of_another_user_is_a_matter_of_permission(tmp_path: Path) -> None:
    path = PageFactory().write(tmp_path)
    code = (
        "import os, sys; from npu_fallback_exporter.errors import PageError\n"
        "from npu_fallback_exporter.pages.page import read_page\n"
        "folder = os.open(sys.argv[1], os.O_RDONLY); os.setuid(65534)\n"
        "try: read_page(sys.argv[2], folder)\n"
        "except PageError as error: print(error.reason)\n"
    )
    tmp_path.chmod(0o755)
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), path.name],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "permission\n"
