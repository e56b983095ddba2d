"""``doctor``: hook, ways into the server, settings, host, port."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npu_fallback_exporter.doctor import (
    exporter_port,
    hook_files,
    host_math,
    settings,
    ways_in,
)
from npu_fallback_exporter.doctor.torch_facts import TorchFacts, gather
from npu_fallback_exporter.instrument.hook_path import HookTarget

from .support.doctor_scene import judged, machine, one, taken_port
from .support.exporter_process import serving

NAME = "npu_fallback_exporter"


@pytest.fixture(scope="module")
def real() -> TorchFacts:
    return gather(os.environ, 120)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a site folder with the start-up file."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / f"{NAME}.pth").write_text("")
    return tmp_path


@pytest.mark.usefixtures("hook_is_built")
def test_the_hook_that_is_built_is_found(real: TorchFacts, tmp_path: Path) -> None:
    found = hook_files.check(machine(tmp_path), real)
    assert judged(found, "hook") == ("ok", "")
    assert Path(one(found, "hook").text).name == HookTarget.of_this_process().file_name


def test_a_torch_without_hook_is_a_problem_with_the_command(tmp_path: Path) -> None:
    other = TorchFacts({"version": "2.98.0", "cxx11_abi": True})
    found = hook_files.check(machine(tmp_path), other)
    assert judged(found, "hook") == ("problem", "run: npu-fallback-exporter build-hook")


def test_a_hook_in_the_named_folder_is_found(tmp_path: Path) -> None:
    other = TorchFacts({"version": "2.98.0", "cxx11_abi": True})
    assert other.target is not None
    (tmp_path / other.target.file_name).write_bytes(b"")
    there = machine(tmp_path, environ={"NPU_FALLBACK_HOOK_PATH": str(tmp_path)})
    assert judged(hook_files.check(there, other), "hook") == ("ok", "")


def test_no_compiler_matters_only_where_one_is_needed(tmp_path: Path) -> None:
    there = machine(tmp_path, environ={"PATH": str(tmp_path)})
    other = TorchFacts({"version": "2.98.0", "cxx11_abi": True})
    status, step = judged(hook_files.check(there, other), "compiler")
    assert status == "problem"
    assert "apt-get install g++" in step


@pytest.mark.usefixtures("hook_is_built")
def test_no_compiler_is_fine_beside_a_compiled_hook(
    real: TorchFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from npu_fallback_exporter.instrument.build import build_boundary

    build_boundary()
    there = machine(tmp_path, environ={"PATH": str(tmp_path)})
    assert judged(hook_files.check(there, real), "compiler") == ("ok", "")


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path) -> None:
    there = machine(tmp_path, environ={"CXX": "no-such-compiler"})
    other = TorchFacts({"version": "2.98.0", "cxx11_abi": True})
    assert "no C++ compiler" in one(hook_files.check(there, other), "compiler").text


def test_a_server_that_asks_is_armed(installed: Path) -> None:
    there = machine(installed, environ={"NPU_FALLBACK_HOOK": "1"})
    assert one(ways_in.check(there), "asked for").text == "NPU_FALLBACK_HOOK=1"


def test_a_server_that_does_not_ask_is_told_how(installed: Path) -> None:
    status, step = judged(ways_in.check(machine(installed)), "asked for")
    assert status == "warning"
    assert "NPU_FALLBACK_HOOK=1" in step


def test_the_installed_start_up_file_is_found(installed: Path) -> None:
    assert judged(ways_in.check(machine(installed)), "start-up file") == ("ok", "")


def test_the_injected_start_up_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "shared" / NAME).mkdir(parents=True)
    (tmp_path / "shared" / "sitecustomize.py").write_text("")
    there = machine(tmp_path, environ={"PYTHONPATH": str(tmp_path / "shared")})
    assert judged(ways_in.check(there), "start-up file") == ("ok", "")


def test_a_missing_start_up_file_is_a_warning(tmp_path: Path) -> None:
    assert judged(ways_in.check(machine(tmp_path)), "start-up file")[0] == "warning"


def test_the_entry_points_of_the_installed_package_are_found(tmp_path: Path) -> None:
    assert judged(ways_in.check(machine(tmp_path)), "entry points") == ("ok", "")


@pytest.mark.parametrize(
    ("environ", "name", "with_file", "without_file"),
    [
        ({}, "autoload", "ok", "ok"),
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "autoload", "ok", "problem"),
        ({}, "VLLM_PLUGINS", "ok", "ok"),
        ({"VLLM_PLUGINS": "ascend"}, "VLLM_PLUGINS", "ok", "warning"),
        ({"VLLM_PLUGINS": f"ascend,{NAME}"}, "VLLM_PLUGINS", "ok", "ok"),
    ],
)
def test_what_switches_a_way_off_matters_only_without_the_start_up_file(
    environ: dict[str, str], name: str, with_file: str, without_file: str, installed: Path
) -> None:
    there = machine(installed, environ=environ)
    assert judged(ways_in.check(there), name)[0] == with_file
    (installed / "site" / f"{NAME}.pth").unlink()
    assert judged(ways_in.check(there), name)[0] == without_file


def test_settings_that_agree_are_ok(tmp_path: Path) -> None:
    found = settings.check(machine(tmp_path, environ={"NPU_FALLBACK_MODE": "strict"}))
    assert [finding.status.value for finding in found] == ["ok", "ok"]
    assert one(found, "mode").text == "strict, from NPU_FALLBACK_MODE"


def test_variables_that_contradict_are_each_a_warning(tmp_path: Path) -> None:
    environ = {"NPU_FALLBACK_MODE": "warn", "TORCH_NPU_FALLBACK_CPU_DISABLE": "1"}
    found = settings.check(machine(tmp_path, environ=environ))
    status, step = judged(found, "variables")
    assert (status, step.split()[:2]) == ("warning", ["unset", "TORCH_NPU_FALLBACK_CPU_DISABLE"])


def test_a_mode_that_is_none_is_a_problem(tmp_path: Path) -> None:
    found = settings.check(machine(tmp_path, environ={"NPU_FALLBACK_MODE": "stict"}))
    assert judged(found, "mode")[0] == "problem"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_one_thread_is_a_warning_that_names_the_variable(tmp_path: Path) -> None:
    there = machine(tmp_path, environ={"OMP_NUM_THREADS": "1"})
    slow = gather({**os.environ, "OMP_NUM_THREADS": "1"}, 120)
    found = one(host_math.check(there, slow), "intra-op threads")
    assert found.status.value == "warning"
    assert "OMP_NUM_THREADS=1: every fallback computes on one thread" in found.text


def test_more_threads_than_cpus_are_a_warning(tmp_path: Path) -> None:
    many = TorchFacts({"version": "2.13.0", "cxx11_abi": True, "threads": 10**4})
    assert judged(host_math.check(machine(tmp_path), many), "intra-op threads")[0] == "warning"


def test_the_installed_math_library_is_named(real: TorchFacts, tmp_path: Path) -> None:
    found = host_math.check(machine(tmp_path), real)
    assert judged(found, "math library") == ("ok", "")
    assert "MKL" in one(found, "math library").text or "Open" in one(found, "math library").text


def test_a_torch_without_blas_is_a_warning(tmp_path: Path) -> None:
    bare = TorchFacts({"version": "2.13.0", "threads": 1, "build": "USE_MKL=OFF, USE_MKLDNN=1"})
    assert judged(host_math.check(machine(tmp_path), bare), "math library")[0] == "warning"


def test_a_free_port_is_ok(tmp_path: Path) -> None:
    with taken_port() as port:
        pass
    there = machine(tmp_path, host="127.0.0.1", port=port)
    assert judged(exporter_port.check(there), "port") == ("ok", "")


def test_a_port_of_somebody_else_is_a_warning(tmp_path: Path) -> None:
    with taken_port() as port:
        there = machine(tmp_path, host="127.0.0.1", port=port)
        assert judged(exporter_port.check(there), "port")[0] == "warning"


def test_a_port_of_an_exporter_is_ok(tmp_path: Path) -> None:
    with serving(pages=tmp_path) as exporter:
        there = machine(tmp_path, host="127.0.0.1", port=exporter.port)
        found = one(exporter_port.check(there), "port")
    assert found.text.startswith("an exporter listens")


def test_an_address_that_is_not_here_is_a_problem(tmp_path: Path) -> None:
    there = machine(tmp_path, host="203.0.113.7", port=1)
    assert judged(exporter_port.check(there), "port")[0] == "problem"
