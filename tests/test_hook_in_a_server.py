"""Arming a process from outside: orders of import, wrong values, forks, several workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.page import read_page
from tests.support.child import child_environment, run_python

pytestmark = pytest.mark.usefixtures("hook_is_built")

ONE_EVENT = """
import torch, torch_npu
import npu_fallback_exporter as nfe
torch.lgamma(torch.ones(4).npu())
print(nfe.get_fallback_stats().total)
"""


def on(folder: Path, **variables: str) -> dict[str, str]:
    return {"NPU_FALLBACK_DIR": str(folder), **variables}


def events_by_page(folder: Path) -> list[dict[tuple[str, int], int]]:
    return [
        {(key.op, key.npu): slot.events for key, slot in read_page(str(path)).page.slots.items()}
        for path in sorted(folder.glob("*.page"))
    ]


def failures(folder: Path) -> list[str]:
    return [json.loads(path.read_text())["reason"] for path in folder.glob("*.armfail")]


@pytest.mark.parametrize(
    "first",
    [
        "import torch",
        "import torch_npu",
        "import npu_fallback_exporter as nfe; nfe.install()",
        "import torch_npu, npu_fallback_exporter as nfe; nfe.install(); nfe.install()",
        "import npu_fallback_exporter as nfe; nfe.install(); nfe.install('observe')",
    ],
)
def test_every_order_of_imports_arms(tmp_path: Path, first: str) -> None:
    done = run_python(first + ONE_EVENT, on(tmp_path, NPU_FALLBACK_HOOK="1"))
    assert (done.returncode, done.stdout.strip()) == (0, "1")
    assert events_by_page(tmp_path) == [{("aten::lgamma.out", 0): 1}]


def test_a_server_that_switches_autoload_off_is_armed_when_it_imports_torch_npu(
    tmp_path: Path,
) -> None:
    env = on(tmp_path, NPU_FALLBACK_HOOK="1", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert run_python("import torch" + ONE_EVENT, env).stdout.strip() == "1"


def test_a_server_is_not_armed_unless_its_environment_asks(tmp_path: Path) -> None:
    done = run_python(ONE_EVENT, on(tmp_path, NPU_FALLBACK_HOOK=""))
    assert done.stdout.strip() == "0"
    assert list(tmp_path.iterdir()) == []


def test_a_mode_alone_arms(tmp_path: Path) -> None:
    assert run_python(ONE_EVENT, on(tmp_path, NPU_FALLBACK_MODE="observe")).stdout.strip() == "1"


def test_arming_does_not_initialise_the_device(tmp_path: Path) -> None:
    done = run_python(
        "import torch, npu_fallback_exporter as nfe; nfe.install();"
        "print(nfe.is_armed(), torch.npu.is_initialized())",
        on(tmp_path),
    )
    assert done.stdout.strip() == "True False"


def test_the_first_event_of_an_op_is_told_once_in_warn_mode(tmp_path: Path) -> None:
    code = ONE_EVENT + "torch.lgamma(torch.ones(4).npu())"
    done = run_python(code, on(tmp_path, NPU_FALLBACK_HOOK="1"))
    (line,) = done.own_lines
    assert "aten::lgamma.out ran on the CPU (kind dispatcher, npu:0, 32 bytes to the host" in line


def test_nothing_is_told_in_observe_mode(tmp_path: Path) -> None:
    done = run_python(ONE_EVENT, on(tmp_path, NPU_FALLBACK_MODE="auto"))
    assert done.own_lines == []


def test_the_vendors_switched_off_warning_changes_no_count(tmp_path: Path) -> None:
    env = on(tmp_path, NPU_FALLBACK_HOOK="1", TORCH_NPU_WARNING_DISABLE="1")
    assert run_python(ONE_EVENT, env).stdout.strip() == "1"


# Modes and their sources


def test_a_variable_that_says_strict_refuses_and_is_named_as_the_source(tmp_path: Path) -> None:
    env = on(tmp_path, NPU_FALLBACK_HOOK="1", TORCH_NPU_CPU_FALLBACK="0")
    done = run_python(ONE_EVENT, env)
    assert "RuntimeError: npu-fallback-exporter refuses aten::lgamma.out on npu:0" in done.stderr
    page = read_page(str(next(tmp_path.glob("*.page")))).page
    assert (page.mode, page.mode_source) == ("strict", "TORCH_NPU_CPU_FALLBACK")


def test_what_torch_npus_own_switch_refuses_is_counted_as_blocked(tmp_path: Path) -> None:
    code = """
import torch, torch_npu, npu_fallback_exporter as nfe
try:
    torch.lgamma(torch.ones(4).npu())
except RuntimeError as error:
    print("disabled by TORCH_NPU_FALLBACK_CPU_DISABLE=1" in str(error))
stats = nfe.get_fallback_stats()
print(stats.total, stats.blocked, stats.errors)
"""
    env = on(tmp_path, NPU_FALLBACK_MODE="observe", TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    done = run_python(code, env)
    assert done.stdout.split() == ["True", "0", "1", "0"]
    assert len(done.own_lines) == 1


def test_an_unknown_mode_makes_every_first_use_of_the_npu_raise(tmp_path: Path) -> None:
    code = """
import torch
for _ in range(2):
    try:
        torch.ones(2, device="npu")
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""
    done = run_python(code, on(tmp_path, NPU_FALLBACK_MODE="strct"))
    line = "NPU_FALLBACK_MODE='strct' is not a mode: set it to one of observe, auto, warn, strict"
    assert [text.startswith(line) for text in done.stdout.splitlines()] == [True, True]
    assert line in done.own_lines[0]
    assert failures(tmp_path) == ["mode"]


def test_an_unknown_mode_does_not_hurt_a_process_that_only_imports_torch(tmp_path: Path) -> None:
    done = run_python(
        "import torch; print((torch.ones(2) + 1).tolist())", on(tmp_path, NPU_FALLBACK_MODE="strct")
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[2.0, 2.0]")


# What cannot be armed

CANNOT_ARM = {
    "page": {"NPU_FALLBACK_DIR": "/proc"},
    "hook": {"XDG_CACHE_HOME": "/nonexistent"},
}


@pytest.mark.parametrize("reason", CANNOT_ARM)
def test_a_server_that_cannot_be_armed_runs_on_and_says_why_in_one_line(
    tmp_path: Path, reason: str
) -> None:
    env = on(tmp_path, NPU_FALLBACK_HOOK="1") | CANNOT_ARM[reason]
    done = run_python(ONE_EVENT, env)
    assert (done.returncode, done.stdout.strip()) == (0, "0")
    (line,) = done.own_lines
    assert line.startswith("npu-fallback-exporter: not armed, nothing is counted: ")


def test_a_missing_hook_is_counted_and_names_the_command_that_makes_it(tmp_path: Path) -> None:
    done = run_python(ONE_EVENT, on(tmp_path, NPU_FALLBACK_HOOK="1") | CANNOT_ARM["hook"])
    assert failures(tmp_path) == ["hook"]
    assert done.own_lines[0].endswith("run: npu-fallback-exporter build-hook")


def test_in_strict_mode_the_first_use_of_the_npu_raises_when_it_cannot_be_armed(
    tmp_path: Path,
) -> None:
    env = on(tmp_path, NPU_FALLBACK_MODE="strict") | CANNOT_ARM["hook"]
    done = run_python(ONE_EVENT, env)
    assert done.returncode == 1
    assert "npu_fallback_exporter.errors.ArmError" in done.stderr


def test_without_torch_npu_one_line_tells_and_the_process_runs_on(tmp_path: Path) -> None:
    code = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch_npu" else find(name, *rest)
import npu_fallback_exporter as nfe
print(nfe.install())
"""
    done = run_python(code, on(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, "False")
    assert "torch_npu is not installed" in done.own_lines[0]
    assert failures(tmp_path) == ["torch_npu"]


def test_wrong_values_are_told_and_their_defaults_used(tmp_path: Path) -> None:
    wrong = {"NPU_FALLBACK_HOOK": "yes", "NPU_FALLBACK_MAX_OPS": "many", "NPU_FALLBACK_TRACK": "x"}
    done = run_python(ONE_EVENT, on(tmp_path, NPU_FALLBACK_MODE="observe") | wrong)
    assert done.stdout.strip() == "1"
    told = [line.split("'")[0] for line in done.own_lines]
    assert told == [f"npu-fallback-exporter: {variable}=" for variable in wrong]


# Several processes


def test_a_child_of_a_fork_uses_the_device_and_counts_from_zero(tmp_path: Path) -> None:
    code = """
import os, torch, torch_npu, npu_fallback_exporter as nfe
nfe.install("observe")
print("parent", torch.npu.is_initialized(), flush=True)
child = os.fork()
if child == 0:
    print("before", nfe.get_fallback_stats().total, flush=True)
    for _ in range(3):
        torch.lgamma(torch.ones(4).npu())
    print("after", nfe.get_fallback_stats().total, flush=True)
    os._exit(0)
print("status", os.waitpid(child, 0)[1], torch.npu.is_initialized(), nfe.get_fallback_stats().total)
"""
    done = run_python(code, on(tmp_path))
    assert done.stdout.splitlines() == ["parent False", "before 0", "after 3", "status 0 False 0"]
    assert sorted(map(len, events_by_page(tmp_path))) == [0, 1]


def test_only_the_rank_that_falls_back_shows_events_and_only_on_its_device(tmp_path: Path) -> None:
    code = """
import os, torch, torch_npu
rank = int(os.environ["RANK"])
torch.npu.set_device(rank % torch.npu.device_count())
x = torch.ones(16).npu()
for _ in range(10 if rank == 3 else 0):
    torch.lgamma(x)
"""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=child_environment(on(tmp_path, NPU_FALLBACK_HOOK="1", RANK=str(rank))),
            stderr=subprocess.DEVNULL,
        )
        for rank in range(8)
    ]
    assert [worker.wait(timeout=240) for worker in workers] == [0] * 8
    pages = events_by_page(tmp_path)
    assert len(pages) == 8
    assert [page for page in pages if page] == [{("aten::lgamma.out", 1): 10}]


def test_counts_survive_a_worker_that_is_killed(tmp_path: Path) -> None:
    code = ONE_EVENT + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = run_python(code, on(tmp_path, NPU_FALLBACK_HOOK="1"))
    assert done.returncode == -9
    assert events_by_page(tmp_path) == [{("aten::lgamma.out", 0): 1}]


def test_importing_the_package_imports_neither_torch_nor_prometheus_client() -> None:
    code = """
import sys, npu_fallback_exporter
print({"torch", "prometheus_client"} & set(sys.modules))
"""
    assert run_python(code).stdout.strip() == "set()"


def test_the_page_tells_versions_and_how_much_is_watched(tmp_path: Path) -> None:
    run_python(ONE_EVENT, on(tmp_path, NPU_FALLBACK_HOOK="1", ASCEND_RT_VISIBLE_DEVICES="0,1"))
    page = read_page(str(next(tmp_path.glob("*.page")))).page
    assert (page.versions.torch, page.versions.torch_npu) == ("2.13.0", "2.13.0")
    assert (page.track, page.boundary, page.chips.visible_devices) == ("all", "partial", "0,1")
    assert page.armed.armed_ns > 0
