"""``doctor``: the pages folder and what is in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from npu_fallback_exporter.doctor import pages_folder
from npu_fallback_exporter.doctor.finding import Finding
from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.pages.arm_failure import record

from .support.child import run_python
from .support.doctor_scene import judged, machine, one
from .support.in_process_exporter import InProcessExporter
from .support.page_factory import PageFactory


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder on a tmpfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="doctor-") as folder:
        yield Path(folder)


def of(folder: Path) -> tuple[Finding, ...]:
    return pages_folder.check(machine(folder, environ={"NPU_FALLBACK_DIR": str(folder)}))


def test_a_folder_that_is_fine_says_so(shared: Path) -> None:
    PageFactory().write(shared)
    found = of(shared)
    assert {finding.status.value for finding in found} == {"ok"}
    assert one(found, "pages").text == "1"
    assert one(found, "file system").text == "tmpfs"


def test_a_folder_that_is_not_there_yet_is_ok(shared: Path) -> None:
    found = of(shared / "new")
    assert judged(found, "folder") == ("ok", "")
    assert one(found, "room").status.value == "ok"
    assert not (shared / "new").exists()


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    assert judged(of(tmp_path / "no" / "such"), "folder")[0] == "problem"


def test_a_file_in_place_of_the_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert judged(of(tmp_path / "file"), "folder")[0] == "problem"


def test_a_broken_link_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert judged(of(tmp_path / "link"), "folder")[0] == "problem"


def test_a_folder_on_a_disk_is_a_warning(tmp_path: Path) -> None:
    found = of(tmp_path)
    if one(found, "file system").text == "tmpfs":
        pytest.skip("temporary files are on a tmpfs here")
    status, step = judged(found, "file system")
    assert status == "warning"
    assert "NPU_FALLBACK_DIR" in step


def test_a_remote_file_system_is_a_problem() -> None:
    assert pages_folder._file_system("nfs4").status.value == "problem"


def test_a_folder_that_everybody_may_write_is_a_warning(shared: Path) -> None:
    shared.chmod(0o777)
    assert judged(of(shared), "permissions")[0] == "warning"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_of_another_user_is_a_problem(shared: Path) -> None:
    code = f"""
import os
from pathlib import Path
from npu_fallback_exporter.doctor import pages_folder
from npu_fallback_exporter.doctor.machine import Machine
machine = Machine(pages=(Path({str(shared)!r}),))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(*(f"{{one.name}} {{one.status.value}}" for one in pages_folder.check(machine)))
"""
    assert "permissions problem" in run_python(code).stdout


@pytest.mark.parametrize(("pages", "status"), [(0, "problem"), (3, "warning"), (100, "ok")])
def test_the_room_is_judged_by_pages(pages: int, status: str) -> None:
    free = pages * layout.PAGE_BYTES // 4096 + 1
    values = (4096, 4096, 10**6, free, free, 0, 0, 0, 0, 255)
    assert pages_folder._room(os.statvfs_result(values)).status.value == status


def test_a_file_that_is_no_page_is_named(shared: Path) -> None:
    (shared / "1-x.page").write_bytes(b"junk")
    assert str(shared / "1-x.page") in one(of(shared), "unreadable files").text


def test_arm_failures_are_a_problem_with_their_reasons(shared: Path) -> None:
    record(shared, "hook")
    record(shared, "hook")
    record(shared, "mode")
    found = one(of(shared), "arm failures")
    assert (found.status.value, found.text) == ("problem", "3 recorded by servers (hook 2, mode 1)")


def test_arm_failures_that_an_exporter_has_carried_over_are_a_warning(shared: Path) -> None:
    record(shared, "hook")
    InProcessExporter(shared).look()
    found = one(of(shared), "arm failures")
    assert (found.status.value, found.text) == ("warning", "1 since the totals began (hook 1)")
