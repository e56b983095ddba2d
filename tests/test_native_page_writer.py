"""The torch-free native code, run by a driver and read back with the Python reader."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.layout import differences
from npu_fallback_exporter.pages.model import Page, SlotKey
from npu_fallback_exporter.pages.page import read_page
from tests.support.native import FLAGS, driver, run_driver


def read(path: str) -> Page:
    return read_page(path).page


def events(page: Page) -> dict[tuple[str, int], int]:
    return {(key.op, key.npu): slot.events for key, slot in page.slots.items()}


def test_the_binary_and_the_python_reader_describe_the_same_format() -> None:
    assert differences(json.loads(run_driver("layout")[0])) == []


@pytest.mark.parametrize("flavour", FLAGS)
def test_sixteen_threads_over_eight_ops_lose_no_event(tmp_path: Path, flavour: str) -> None:
    (path,) = run_driver("threads", tmp_path, "16", "1000", "8", flavour=flavour)
    assert events(read(path)) == {
        (f"test::op{op}", npu): 8 * 125 for op in range(8) for npu in range(2)
    }


def test_fields_of_a_slot_agree_with_each_other(tmp_path: Path) -> None:
    (path,) = run_driver("threads", tmp_path, "2", "100", "1")
    slot = read(path).slots[SlotKey("test::op0", "dispatcher", 0)]
    assert (slot.events, slot.bytes_d2h, slot.bytes_h2d) == (100, 1000, 100)
    assert (slot.duration_ns, slot.bucket_30us) == (100 * 20_000, 100)


@pytest.mark.parametrize("flavour", ["thread", "address"])
def test_a_policy_may_change_while_threads_count(tmp_path: Path, flavour: str) -> None:
    (path,) = run_driver("churn", tmp_path, flavour=flavour)
    assert read(path).mode == "strict"


@pytest.mark.parametrize("flavour", FLAGS)
def test_a_forked_child_counts_from_zero_in_a_page_of_its_own(tmp_path: Path, flavour: str) -> None:
    parent, child, quiet = run_driver("fork", tmp_path, flavour=flavour)
    assert events(read(parent)) == {("test::op0", 0): 3}
    assert events(read(child)) == {("test::op0", 1): 4, ("test::op1", 0): 1}
    assert quiet == ""


def test_a_forked_child_that_counts_nothing_makes_no_page(tmp_path: Path) -> None:
    run_driver("fork", tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_ops_beyond_the_limit_are_counted_together_and_their_number_is_told(tmp_path: Path) -> None:
    (path,) = run_driver("overflow", tmp_path, "10", "25")
    page = read(path)
    assert events(page) == {
        **{(f"test::op{op}", 0): 2 for op in range(10)},
        ("__other__", 0): 30,
    }
    assert page.counters.ops_overflowed == 15


def test_the_largest_table_holds_511_ops(tmp_path: Path) -> None:
    (path,) = run_driver("overflow", tmp_path, "511", "520")
    page = read(path)
    assert len(page.slots) == 512
    assert page.counters.ops_overflowed == 9


def test_slots_that_run_out_lose_no_event(tmp_path: Path) -> None:
    (path,) = run_driver("devices", tmp_path)
    counted = events(read(path))
    assert sum(counted.values()) == 8 * 128
    assert counted["test::op0", 127] == 1


def test_names_that_are_too_long_stay_distinct(tmp_path: Path) -> None:
    (path,) = run_driver("long-names", tmp_path)
    counted = events(read(path))
    assert sorted(counted.values()) == [1, 2]
    assert all(len(op) == 168 and op.startswith("x" * 100) for op, _ in counted)


def test_an_address_used_again_by_another_operator_gets_its_own_name(tmp_path: Path) -> None:
    (path,) = run_driver("reused", tmp_path)
    assert events(read(path)) == {("test::before", 0): 1, ("test::after", 0): 2}


def test_durations_fall_into_the_bucket_whose_bound_they_do_not_exceed(tmp_path: Path) -> None:
    (path,) = run_driver("durations", tmp_path, "0", "10000", "10001", "1000000000", "1000000001")
    slot = read(path).slots[SlotKey("test::op0", "dispatcher", 0)]
    assert (slot.bucket_10us, slot.bucket_30us, slot.bucket_1s, slot.bucket_inf) == (2, 1, 1, 1)


def test_counts_survive_a_kill_and_the_lock_tells_when_the_writer_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [driver(), "killed", tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        path = process.stdout.readline().strip()
        # Its own open and close of the file have not released the lock.
        assert read_page(path).live
        process.communicate("die\n", timeout=30)
    reading = read_page(path)
    assert not reading.live
    assert events(reading.page) == {("test::op0", 0): 7}


def test_rules_decide_in_order_and_the_rest_is_refused_in_strict_mode(tmp_path: Path) -> None:
    (path,) = run_driver("refused", tmp_path)
    page = read(path)
    blocked = {key.op for key, slot in page.slots.items() if slot.blocked}
    assert blocked == {"test::op0", "test::op22"}
    assert (page.mode, page.mode_source) == ("strict", "NPU_FALLBACK_MODE")


def test_only_device_nodes_of_chips_count_as_chips(tmp_path: Path) -> None:
    for name in ("davinci0", "davinci65", "davinci_manager", "davinci", "davinci999", "other3"):
        (tmp_path / name).touch()
    assert run_driver("davinci", tmp_path) == ["1", "2", "0", "0"]


def test_a_page_is_for_this_user_alone(tmp_path: Path) -> None:
    (path,) = run_driver("overflow", tmp_path, "1", "1")
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_a_page_is_wholly_reserved(tmp_path: Path) -> None:
    (path,) = run_driver("overflow", tmp_path, "1", "1")
    status = Path(path).stat()
    assert status.st_blocks * 512 >= status.st_size


def fails(*arguments: str | Path) -> str:
    done = subprocess.run(
        [str(driver()), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_a_missing_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    (path,) = run_driver("overflow", tmp_path / "missing", "1", "1")
    assert Path(path).parent == tmp_path / "missing"
    assert stat.S_IMODE((tmp_path / "missing").stat().st_mode) == 0o700


def test_a_folder_without_a_parent_is_told_with_the_next_step(tmp_path: Path) -> None:
    line = fails("overflow", tmp_path / "no" / "parent", "1", "1")
    assert line.startswith(f"page: cannot use pages folder {tmp_path}/no/parent (No such file")
    assert "set NPU_FALLBACK_DIR" in line


def test_a_failed_page_leaves_nothing_behind(tmp_path: Path) -> None:
    limit = ["prlimit", "--fsize=1000", "sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"]
    done = subprocess.run(
        [*limit, str(driver()), "overflow", str(tmp_path), "1", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.startswith("page: no room for a page of 451584 bytes in")
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_folder_is_told_with_the_next_step() -> None:
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "driver"
        shutil.copy(driver(), binary)
        Path(folder).chmod(0o555)
        done = subprocess.run(
            [str(binary), "overflow", folder, "1", "1"],
            capture_output=True,
            text=True,
            check=False,
            user=65534 if os.geteuid() == 0 else None,  # root may write everywhere
        )
        Path(folder).chmod(0o755)
    assert done.stderr.startswith(f"page: cannot write in pages folder {folder} (Permission denied")
