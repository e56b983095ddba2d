"""Arm failures, from the server process to the exporter."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from npu_fallback_exporter.pages import arm_failure
from npu_fallback_exporter.pages.arm_failure import ArmFailures, record


def _scan(failures: ArmFailures, folder: Path) -> dict[str, int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        names = os.listdir(descriptor)  # noqa: PTH208
        return Counter(one.reason for one in failures.of_folder(str(folder), names, descriptor))
    finally:
        os.close(descriptor)


def test_a_failure_is_counted_under_its_reason(tmp_path: Path) -> None:
    record(tmp_path, "torch_npu")
    assert _scan(ArmFailures(), tmp_path) == {"torch_npu": 1}


def test_a_file_is_read_once_however_often_it_is_seen(tmp_path: Path) -> None:
    failures = ArmFailures()
    record(tmp_path, "build")
    _scan(failures, tmp_path)
    next(tmp_path.iterdir()).write_text("nonsense")
    record(tmp_path, "page")
    assert _scan(failures, tmp_path) == {"build": 1, "page": 1}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "7", '{"reason": 7}', '{"reason": "x"}', '{"reason": "page"' + " " * 9999],
)
def test_a_file_that_makes_no_sense_is_a_failure_of_another_reason(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "1.armfail").write_text(content)
    assert _scan(ArmFailures(), tmp_path) == {"other": 1}


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"reason": "page"}')
    (tmp_path / "1.armfail").symlink_to(tmp_path / "secret")
    assert _scan(ArmFailures(), tmp_path) == {"other": 1}


def test_the_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    record(tmp_path / "pages", "page")
    assert (tmp_path / "pages").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to any group")
def test_a_folder_made_for_a_group_is_one_as_the_page_writer_makes(tmp_path: Path) -> None:
    record(tmp_path / "pages", "page", group=54321)
    status = (tmp_path / "pages").stat()
    assert (status.st_mode & 0o7777, status.st_gid) == (0o2750, 54321)


def test_the_file_is_for_this_user_alone_unless_a_group_may_read(tmp_path: Path) -> None:
    record(tmp_path, "page")
    (own,) = tmp_path.iterdir()
    assert own.stat().st_mode & 0o777 == 0o600
    own.unlink()
    record(tmp_path, "page", group=os.getegid())
    (shared,) = tmp_path.iterdir()
    assert shared.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    record(file / "pages", "page")


def test_a_server_that_fails_for_days_does_not_fill_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arm_failure, "MAX_FILES", 3)
    for _ in range(5):
        record(tmp_path, "page")
    assert len(list(tmp_path.iterdir())) == 3
