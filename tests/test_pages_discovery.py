"""Folders of pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_fallback_exporter.pages import discovery
from npu_fallback_exporter.pages.arm_failure import ArmFailures
from npu_fallback_exporter.pages.discovery import (
    Scan,
    default_folder,
    readable_default_folders,
    scan,
)
from npu_fallback_exporter.pages.file_system import file_system_of, is_remote
from npu_fallback_exporter.pages.page import Reading, read_page

from .support.page_factory import PageFactory, writer_of


def _scan(*folders: Path) -> Scan:
    return scan(folders, ArmFailures())


def test_pages_of_several_folders_are_found_with_their_state(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    PageFactory().write(first)
    with writer_of(PageFactory().write(second)):
        found = _scan(first, second)
    assert [page.reading.live for page in found.pages] == [False, True]


def test_files_being_made_and_foreign_files_are_ignored(tmp_path: Path) -> None:
    for name in ("1-2-3.tmp", "notes.txt", "page"):
        (tmp_path / name).touch()
    found = _scan(tmp_path)
    assert (found.pages, found.skipped) == ((), ())


def test_bad_files_cost_only_themselves(tmp_path: Path) -> None:
    (tmp_path / "empty.page").touch()
    (tmp_path / "random.page").write_bytes(bytes(range(256)) * 2000)
    (tmp_path / "cut.page").write_bytes(PageFactory().data[:5000])
    PageFactory(layout_version=2).write(tmp_path, "newer.page")
    PageFactory().write(tmp_path)
    found = _scan(tmp_path)
    assert sorted(skipped.error.reason for skipped in found.skipped) == [
        "empty",
        "magic",
        "truncated",
        "version",
    ]
    assert len(found.pages) == 1


def test_a_folder_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert _scan(tmp_path / "later") == Scan((), ())


def test_a_path_that_is_no_folder_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (skipped,) = _scan(file).skipped
    assert skipped.error.reason == "io"


def test_a_page_that_vanishes_between_listing_and_reading_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PageFactory().write(tmp_path, "a.page")
    gone = PageFactory().write(tmp_path, "b.page")

    def remove_then_read(name: str, folder_fd: int) -> Reading:
        gone.unlink(missing_ok=True)
        return read_page(name, folder_fd)

    monkeypatch.setattr(discovery, "read_page", remove_then_read)
    found = _scan(tmp_path)
    assert len(found.pages) == 1
    assert [skipped.error.reason for skipped in found.skipped] == ["vanished"]


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("tmpfs /dev/shm tmpfs rw 0 0\n", "/dev/shm/npu-fallback-7"),
        ("tmpfs /dev/shm tmpfs rw 0 0\n/dev/sda /dev/shm ext4 rw 0 0\n", "TMP/npu-fallback-7"),
        ("/dev/sda / ext4 rw 0 0\n", "TMP/npu-fallback-7"),
    ],
)
def test_the_default_folder_is_in_shared_memory_where_that_is_a_tmpfs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, expected: str
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "TMP")
    (tmp_path / "mounts").write_text(mounts)
    assert str(default_folder(7, tmp_path / "mounts")) == expected


def test_every_readable_default_folder_is_found(tmp_path: Path) -> None:
    own = tmp_path / f"npu-fallback-{os.geteuid()}"
    own.mkdir(mode=0o700)
    (tmp_path / "npu-fallback-x").mkdir()
    assert readable_default_folders([tmp_path]) == (own,)


def test_a_folder_of_somebody_else_does_not_pass_for_mine(tmp_path: Path) -> None:
    (tmp_path / f"npu-fallback-{os.geteuid() + 1}").mkdir(mode=0o700)
    assert readable_default_folders([tmp_path]) == ()


def test_a_default_folder_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    own = tmp_path / f"npu-fallback-{os.geteuid()}"
    own.mkdir()
    own.chmod(0o777)
    assert readable_default_folders([tmp_path]) == ()


def test_a_default_folder_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / f"npu-fallback-{os.geteuid()}").symlink_to(tmp_path)
    assert readable_default_folders([tmp_path]) == ()


def test_a_folder_that_may_be_shared_between_machines_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PageFactory().events("aten::a", 1).write(tmp_path)
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"21 1 0:5 / /elsewhere rw - tmpfs none rw\n"
        f"22 1 {os.major(device)}:{os.minor(device)} / / rw shared:1 - fuse.sshfs host:/x rw\n"
    )
    monkeypatch.setattr(
        discovery, "file_system_of", lambda descriptor: file_system_of(descriptor, mounts)
    )
    found = _scan(tmp_path)
    assert found.pages == ()
    assert [str(skipped.error) for skipped in found.skipped] == [
        f"pages folder {tmp_path} is on fuse.sshfs, which is not shared memory of this host: "
        "name a folder on a tmpfs with --pages, and in NPU_FALLBACK_DIR of the servers"
    ]


def test_the_file_system_of_a_folder_is_told(tmp_path: Path) -> None:
    descriptor = os.open("/dev/shm" if Path("/dev/shm").is_mount() else tmp_path, os.O_RDONLY)
    name = file_system_of(descriptor)
    os.close(descriptor)
    assert name == ("tmpfs" if Path("/dev/shm").is_mount() else name)
    assert not is_remote(name)


@pytest.mark.parametrize("name", ["nfs", "nfs4", "fuse", "fuse.s3fs", "9p", "virtiofs", "cifs"])
def test_file_systems_between_machines_are_remote(name: str) -> None:
    assert is_remote(name)
