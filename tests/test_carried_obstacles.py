"""What may be in the way when the counts of ended processes are carried over."""

from __future__ import annotations

import fcntl
import logging
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .support.in_process_exporter import InProcessExporter, pages_in
from .support.page_factory import PageFactory, writer_of
from .support.page_life import run

Exporter = InProcessExporter


@pytest.mark.parametrize("kind", [fcntl.LOCK_EX, fcntl.LOCK_SH], ids=["exclusive", "shared"])
def test_a_lock_that_somebody_else_holds_is_not_waited_for(tmp_path: Path, kind: int) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter = Exporter(tmp_path)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind)
        assert exporter.events() == {"aten::a": 3}
        assert len(pages_in(tmp_path)) == 1
    finally:
        os.close(descriptor)
    assert exporter.events() == {"aten::a": 3}
    assert pages_in(tmp_path) == []


@contextmanager
def _as_nobody(group: int = 65534) -> Iterator[None]:
    os.setegid(group)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without the right")
@pytest.mark.parametrize("mode", [0o755, 0o1777], ids=["read-only", "sticky"])
def test_an_exporter_that_may_not_remove_pages_only_reads(mode: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(mode)
        path = PageFactory().events("aten::a", 3).write(folder)
        path.chmod(0o644)
        with _as_nobody():
            exporter = Exporter(folder)
            assert exporter.events() == exporter.events() == {"aten::a": 3}
        assert [file.name for file in folder.iterdir()] == [path.name]
        other = Exporter(folder)
        other.look()
        assert pages_in(folder) == []
        (folder / "totals.json").chmod(0o644)
        with _as_nobody():
            assert exporter.events() == Exporter(folder).events() == {"aten::a": 3}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_exporter_of_the_group_may_read_and_one_of_another_group_may_not() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "pages"
        run("shared", folder, 54321)
        path = PageFactory().events("aten::a", 3).write(folder)
        os.chown(path, -1, 54321)
        path.chmod(0o640)
        with _as_nobody(54321):
            assert Exporter(folder).events() == {"aten::a": 3}
        with _as_nobody():
            exporter = Exporter(folder)
            assert exporter.events() == {}
            assert exporter.totals.live.unreadable == {"permission": 1}
        Exporter(folder).look()
        assert pages_in(folder) == []
        with _as_nobody(54321):
            assert Exporter(folder).events() == {"aten::a": 3}


def test_without_room_for_the_totals_the_pages_stay_and_one_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter = Exporter(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with caplog.at_level(logging.WARNING):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            assert exporter.events() == exporter.events() == {"aten::a": 3}
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [message.getMessage() for message in caplog.records] == [
        f"cannot carry over the counts of ended processes in {tmp_path} (File too large): "
        "their pages stay there; free space, or run the exporter as the server's user"
    ]
    assert len(list(tmp_path.iterdir())) == 1
    assert exporter.events() == {"aten::a": 3}
    assert pages_in(tmp_path) == []


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b'{"format":"npu-fallback-totals","version":1}']
)
def test_damaged_totals_are_set_aside_and_a_running_exporter_keeps_its_counts(
    tmp_path: Path, data: bytes
) -> None:
    exporter = Exporter(tmp_path)
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter.look()
    (tmp_path / "totals.json").write_bytes(data)
    PageFactory().events("aten::a", 4).write(tmp_path)
    for _ in range(3):
        assert exporter.events() == {"aten::a": 7}
    assert (tmp_path / "totals.json.corrupt").read_bytes() == data
    assert Exporter(tmp_path).events() == {"aten::a": 4}


def test_totals_that_fell_are_skipped(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter.look()
    older = (tmp_path / "totals.json").read_bytes()
    PageFactory().events("aten::a", 4).write(tmp_path)
    exporter.look()
    exporter.look()
    (tmp_path / "totals.json").write_bytes(older)
    assert exporter.events() == {"aten::a": 7}
    assert exporter.totals.skipped["corrupt"] == 1


def test_totals_of_another_version_are_left_alone_and_so_are_thepages_in(tmp_path: Path) -> None:
    data = b'{"format":"npu-fallback-totals","version":9}'
    (tmp_path / "totals.json").write_bytes(data)
    PageFactory().events("aten::a", 3).write(tmp_path)
    exporter = Exporter(tmp_path)
    assert exporter.events() == exporter.events() == {"aten::a": 3}
    assert len(pages_in(tmp_path)) == 1
    assert (tmp_path / "totals.json").read_bytes() == data
    assert exporter.totals.skipped["version"] == 1


@pytest.mark.parametrize("name", ["totals.json", "armed.json", "totals.json.tmp", "armed.json.tmp"])
def test_links_out_of_the_folder_are_neither_read_nor_written_through(
    tmp_path: Path, name: str
) -> None:
    folder, outside = tmp_path / "pages", tmp_path / "outside"
    folder.mkdir()
    outside.write_text("precious")
    (folder / name).symlink_to(outside)
    path = PageFactory().events("aten::a", 3).write(folder)
    exporter = Exporter(folder)
    with writer_of(path):
        exporter.look()
    assert exporter.events() == exporter.events() == {"aten::a": 3}
    assert outside.read_text() == "precious"


def test_totals_of_another_folder_are_not_read_through_a_link(tmp_path: Path) -> None:
    folder, other = tmp_path / "pages", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    PageFactory().events("aten::a", 3).write(other)
    Exporter(other).look()
    (folder / "totals.json").symlink_to(other / "totals.json")
    assert Exporter(folder).events() == {}


@pytest.mark.parametrize("name", ["totals.json", "armed.json"])
def test_a_fifo_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    PageFactory().events("aten::a", 3).write(tmp_path)
    assert Exporter(tmp_path).events() == {"aten::a": 3}


def test_what_is_carried_over_is_for_this_user_alone(tmp_path: Path) -> None:
    PageFactory().write(tmp_path)
    Exporter(tmp_path).look()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"totals.json": 0o600, "armed.json": 0o600}


def test_in_a_folder_shared_with_a_group_the_group_may_read_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o2750)
    PageFactory().write(tmp_path)
    Exporter(tmp_path).look()
    assert (tmp_path / "totals.json").stat().st_mode & 0o777 == 0o640


def test_what_a_process_left_that_died_while_it_made_its_page_goes_after_a_minute(
    tmp_path: Path,
) -> None:
    left = tmp_path / "1-2-3.tmp"
    left.write_bytes(bytes(1000))
    os.utime(left, (0, 0))  # as after a step of the clock: it is not asked
    exporter = Exporter(tmp_path)
    exporter.look()
    exporter.second += 59
    exporter.look()
    assert left.exists()
    exporter.second += 1
    exporter.look()
    assert not left.exists()


def test_files_that_are_no_pages_stay(tmp_path: Path) -> None:
    for name in ("bad.page", "notes.txt", "totals.json.old"):
        (tmp_path / name).write_text("x")
    exporter = Exporter(tmp_path)
    for _ in range(3):
        exporter.second += 100
        exporter.look()
    assert {"bad.page", "notes.txt", "totals.json.old"} <= {p.name for p in tmp_path.iterdir()}
