"""``doctor``: versions, and the child that imports torch and torch_npu."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from npu_fallback_exporter.doctor import versions
from npu_fallback_exporter.doctor.torch_facts import TorchFacts, gather
from npu_fallback_exporter.doctor.version_table import stated, torch_for

from .cann_sim import Ledger
from .support.child import run_python
from .support.doctor_scene import judged, machine, one


def facts(torch: str = "2.12.0+cpu", torch_npu: str = "2.12.0", cann: str = "") -> TorchFacts:
    return TorchFacts({"version": torch, "cxx11_abi": True}, {"version": torch_npu, "cann": cann})


@pytest.fixture(scope="module")
def real() -> TorchFacts:
    return gather(os.environ, 120)


@pytest.mark.usefixtures("ledger")
def test_the_child_tells_the_installed_torch_and_torch_npu(real: TorchFacts) -> None:
    told = run_python("import torch, torch_npu; print(torch.__version__, torch_npu.__version__)")
    assert told.stdout.split() == [real.torch["version"], real.torch_npu["version"]]
    assert real.trouble == ""
    assert real.target is not None


@pytest.mark.usefixtures("ledger")
def test_the_installed_versions_are_ok(real: TorchFacts, tmp_path: Path) -> None:
    found = versions.check(machine(tmp_path), real)
    assert [judged(found, name) for name in ("torch", "torch_npu", "they fit")] == [("ok", "")] * 3


def test_the_child_initialises_no_device(ledger: Ledger) -> None:
    code = (
        "from npu_fallback_exporter.doctor.torch_probe import main; main()\n"
        "from tests.cann_sim import Ledger\n"
        "import sys; sys.stderr.write('calls=' + ' '.join(Ledger().functions()))"
    )
    done = run_python(code, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert '"torch_npu"' in done.stdout
    calls = set(done.stderr.rpartition("calls=")[2].split())
    assert not calls & {"aclInit", "aclrtSetDevice", "aclrtCreateContext", "aclrtCreateStream"}


def test_a_torch_that_breaks_at_import_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libc10.so is torn')\n")
    there = machine(tmp_path, environ={"PYTHONPATH": str(tmp_path)})
    broken = gather(_first(there.environ, tmp_path), 60)
    found = one(versions.check(there, broken), "torch")
    assert found.status.value == "problem"
    assert "OSError: libc10.so is torn" in found.text
    assert "\n" not in found.text


def test_a_torch_that_kills_its_process_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os; os.abort()\n")
    broken = gather(_first({}, tmp_path), 60)
    assert broken.torch == {}
    assert broken.trouble.startswith("killed by SIGABRT")


def test_a_torch_that_never_ends_costs_the_deadline_only(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import threading; threading.Event().wait()\n")
    started = time.monotonic()
    broken = gather(_first({}, tmp_path), 1.0)
    assert broken.trouble == "no answer within 1 s"
    assert time.monotonic() - started < 10


@pytest.mark.usefixtures("ledger")
def test_what_torch_told_survives_a_broken_torch_npu(tmp_path: Path) -> None:
    environ = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
    half = gather(environ, 120)
    found = versions.check(machine(tmp_path), half)
    assert judged(found, "torch") == ("ok", "")
    status, step = judged(found, "torch_npu")
    assert status == "problem"
    assert "set_env.sh" in step


def test_a_torch_that_torch_npu_is_not_made_for_is_a_problem(tmp_path: Path) -> None:
    found = versions.check(machine(tmp_path), facts(torch="2.11.0+cpu"))
    assert (
        one(found, "they fit").text == "torch_npu 2.12.0 is made for torch 2.12.0, not 2.11.0+cpu"
    )
    assert judged(found, "they fit")[0] == "problem"


def test_an_old_torch_is_a_problem(tmp_path: Path) -> None:
    found = versions.check(machine(tmp_path), facts(torch="2.8.0", torch_npu="2.8.0"))
    assert judged(found, "torch") == ("problem", "use 2.9 or newer")


@pytest.mark.parametrize(
    ("torch_npu", "cann", "status"),
    [
        ("2.12.0", "9.1.0", "ok"),
        ("2.12.0", "8.5.0", "warning"),
        ("2.12.0.post2", "9.1.7", "ok"),
        ("2.12.0.post2", "9.2.0", "warning"),
        ("2.8.0", "8.3.rc1", "ok"),
        ("2.13.0", "9.1.0", "ok"),
        ("2.12.0", "", "warning"),
    ],
)
def test_cann_is_compared_with_what_torch_npu_states(
    torch_npu: str, cann: str, status: str, tmp_path: Path
) -> None:
    found = versions.check(machine(tmp_path), facts(torch_npu=torch_npu, cann=cann))
    assert judged(found, "CANN")[0] == status


def test_cann_is_read_from_its_folder_where_torch_npu_tells_none(tmp_path: Path) -> None:
    folder = tmp_path / f"{os.uname().machine}-linux"
    folder.mkdir()
    (folder / "ascend_toolkit_install.info").write_text("package_name=Ascend\nversion=9.1.0\n")
    there = machine(tmp_path, environ={"ASCEND_HOME_PATH": str(tmp_path)})
    assert one(versions.check(there, facts()), "CANN").text == "9.1.0, as torch_npu 2.12.0 states"


def test_the_driver_is_read_from_its_version_file(tmp_path: Path) -> None:
    (tmp_path / "version.info").write_text("Version=25.2.0\nascendhal_version=7.35.23\n")
    assert one(versions.check(machine(tmp_path), facts()), "driver").text.startswith("25.2.0 ")


def test_no_driver_is_a_warning(tmp_path: Path) -> None:
    assert judged(versions.check(machine(tmp_path), facts()), "driver")[0] == "warning"


def test_every_row_of_the_table_follows_the_naming_rule() -> None:
    assert len(stated()) > 20
    for row in stated().values():
        assert row.torch_npu.startswith(row.torch)


def test_a_version_that_is_not_in_the_table_goes_by_its_name() -> None:
    assert torch_for("2.14.0.post3+git1") == "2.14.0"


def _first(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which ``folder`` comes before every installed package."""
    path = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**path, **environ, "PYTHONPATH": str(folder)}
