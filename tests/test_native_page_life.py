"""What can happen to a page, and to its folder, while its process lives: the server lives on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.page import read_page

from .support.exporter_process import wait_until
from .support.native import driver
from .support.page_life import command, run, writing

NAMESPACES = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and util-linux"
)


def _events(path: str | Path) -> int:
    return sum(slot.events for slot in read_page(str(path)).page.slots.values())


def _remove(page: Path) -> None:
    page.unlink()


def _scribble(page: Path) -> None:
    with page.open("r+b") as file:
        file.write(b"\xff" * page.stat().st_size)


def _cut(size: int) -> Callable[[Path], None]:
    return lambda page: os.truncate(page, size)


def _cut_and_grow(page: Path) -> None:
    size = page.stat().st_size
    os.truncate(page, 0)
    os.truncate(page, size)


@pytest.mark.parametrize(
    "disturb",
    [_cut(0), _cut(100), _cut(5000), _cut_and_grow, _remove, _scribble],
    ids=["cut to nothing", "cut in the header", "cut later", "cut and grown", "removed", "garbage"],
)
def test_whatever_somebody_does_to_its_page_the_process_and_its_child_live_on(
    tmp_path: Path, disturb: Callable[[Path], None]
) -> None:
    with writing("disturbed", tmp_path) as writer:
        disturb(writer.page)
        (child_page, child, alive), _ = writer.go_on()
    assert (child, alive, writer.process.returncode) == ("child 0", "alive", 0)
    assert _events(child_page) == 5


def test_a_page_that_was_cut_is_told_once_with_the_next_step(tmp_path: Path) -> None:
    with writing("disturbed", tmp_path) as writer:
        os.truncate(writer.page, 0)
        _, err = writer.go_on()
    assert err == (
        f"npu-fallback-exporter: this process counts nothing any more: page {writer.page} was cut: "
        "find out who writes to it, then restart\n"
    )


def test_a_child_without_room_for_a_page_lives_on_and_says_so(tmp_path: Path) -> None:
    with writing("disturbed", tmp_path) as writer:
        shutil.rmtree(tmp_path)
        tmp_path.touch()  # a missing folder would be made
        (child_page, child, alive), err = writer.go_on()
    assert (child_page, child, alive) == ("", "child 0", "alive")
    assert "this process counts nothing: cannot write in pages folder" in err
    assert err.count("\n") == 1


def test_a_handler_that_was_there_gets_the_signals_that_are_not_about_the_page(
    tmp_path: Path,
) -> None:
    assert run("foreign-handler", tmp_path).stdout.splitlines()[1] == "1"


def test_a_fault_in_another_file_still_ends_the_process(tmp_path: Path) -> None:
    assert run("foreign-fault", tmp_path).returncode == -signal.SIGBUS


def test_a_signal_that_somebody_sends_ends_the_process_as_without_the_hook(tmp_path: Path) -> None:
    with writing("endless", tmp_path, 1) as writer:
        writer.process.send_signal(signal.SIGBUS)
        assert writer.process.wait(60) == -signal.SIGBUS


FAULTHANDLER = """
import ctypes, faulthandler, os, sys
if sys.argv[3] == "before":
    faulthandler.enable()
writer = ctypes.CDLL(sys.argv[1])
page = writer.open_page(sys.argv[2].encode())
if sys.argv[3] == "after":
    faulthandler.enable()
(name,) = os.listdir(sys.argv[2])
os.truncate(os.path.join(sys.argv[2], name), 0)
writer.touch_page()
print("alive")
"""


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_a_cut_page_does_not_kill_a_python_with_its_own_fault_handler(
    tmp_path: Path, when: str
) -> None:
    library = driver(name="libpage")
    pages = tmp_path / "pages"
    pages.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FAULTHANDLER, str(library), str(pages), when],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def _in_small_tmpfs(folder: Path, size: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the driver with a tmpfs of its own on `folder`, in a mount namespace of its own."""
    script = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", size, str(folder), *command(*arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@NAMESPACES
def test_a_page_on_a_full_tmpfs_is_refused_before_it_can_hurt(tmp_path: Path) -> None:
    done = _in_small_tmpfs(tmp_path, "256k", "worker", str(tmp_path), "1", "1", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"page: no room for a page of 451584 bytes in {tmp_path}")
    assert "free space there, or set NPU_FALLBACK_DIR" in done.stderr


@NAMESPACES
def test_a_page_on_a_tmpfs_that_fills_up_later_keeps_counting(tmp_path: Path) -> None:
    script = """
mount -t tmpfs -o size=1m none "$2" && mkfifo "$2/go" "$2/out" || exit 1
"$1" disturbed "$2" <"$2/go" >"$2/out" &
exec 3>"$2/go" 4<"$2/out"
read page <&4
! dd if=/dev/zero of="$2/fill" bs=4k 2>/dev/null || exit 1
echo >&3
cat <&4
"""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command(), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "\nchild 0\nalive\n"
    assert done.stderr.startswith("npu-fallback-exporter: this process counts nothing: no room for")


# What the C library answers on file systems that cannot be mounted here.
ANSWERS = {
    "mmap": (
        "void* mmap(void*, size_t, int, int, int, off_t)"
        " { errno = ENODEV; return reinterpret_cast<void*>(-1); }",
        "cannot map page in",
    ),
    "fcntl": ("int fcntl(int, int, ...) { errno = ENOLCK; return -1; }", "cannot lock page"),
    "NFS": (
        "int statfs(const char*, struct statfs* to) { to->f_type = 0x6969; return 0; }",
        "is on NFS, which is not shared memory of this host",
    ),
    "FUSE": (
        "int statfs(const char*, struct statfs* to) { to->f_type = 0x65735546; return 0; }",
        "is on FUSE, which is not shared memory of this host",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_file_system_without_shared_mappings_or_locks_or_of_another_machine_is_refused(
    tmp_path: Path, name: str
) -> None:
    answer, why = ANSWERS[name]
    source, library, pages = tmp_path / "it.cpp", tmp_path / "it.so", tmp_path / "pages"
    includes = "".join(
        f"#include <{header}>\n" for header in ("cerrno", "sys/types.h", "sys/vfs.h")
    )
    source.write_text(f'{includes}extern "C" {{ {answer} }}\n')
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    pages.mkdir()
    done = subprocess.run(
        command("worker", pages, 1, 1, 0),
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert why in line
    assert "set NPU_FALLBACK_DIR to a folder on a tmpfs" in line
    assert list(pages.iterdir()) == []


def test_a_child_that_outlives_the_server_does_not_keep_its_page_alive(tmp_path: Path) -> None:
    with writing("outlived", tmp_path) as writer:
        writer.process.wait(60)
        # The child lets go of it as its first act, which may take a moment.
        wait_until(lambda: not read_page(str(writer.page)).live)
        writer.process.communicate(timeout=60)
    assert _events(writer.page) == 3


def test_a_folder_with_a_thousand_pages_takes_no_more(tmp_path: Path) -> None:
    for number in range(1024):
        (tmp_path / f"{number}.page").touch()
    done = run("worker", tmp_path, 1, 1, 0)
    assert done.returncode == 1
    assert done.stderr.startswith(f"page: pages folder {tmp_path} holds 1024 pages already: run an")


def test_the_default_folder_is_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    page = Path(run("shared", folder, -1).stdout.strip())
    assert (folder.stat().st_mode & 0o7777, page.stat().st_mode & 0o7777) == (0o700, 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to any group")
def test_a_group_that_may_read_gets_the_folder_and_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    page = Path(run("shared", folder, 54321).stdout.strip())
    assert (folder.stat().st_mode & 0o7777, folder.stat().st_gid) == (0o2750, 54321)
    assert (page.stat().st_mode & 0o7777, page.stat().st_gid) == (0o640, 54321)


def test_a_default_folder_that_is_a_link_or_open_to_others_is_refused(tmp_path: Path) -> None:
    target, link, shared = tmp_path / "target", tmp_path / "link", tmp_path / "open"
    target.mkdir(mode=0o700)
    link.symlink_to(target)
    shared.mkdir()
    shared.chmod(0o777)
    for folder in (link, shared):
        assert "is not a folder of this user alone" in run("shared", folder, -1).stderr
    assert list(target.iterdir()) == []
