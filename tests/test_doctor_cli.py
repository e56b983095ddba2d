"""``doctor`` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from npu_fallback_exporter.doctor import checkup, ways_in
from npu_fallback_exporter.doctor.finding import Status
from npu_fallback_exporter.doctor.output import count

from .support.child import child_environment
from .support.doctor_scene import machine


def doctor(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "npu_fallback_exporter", "doctor"]
    command += ["--web.listen-address", "127.0.0.1:0", *arguments]
    return subprocess.run(
        command,
        env=child_environment(env),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.usefixtures("ledger", "hook_is_built")
def test_a_machine_that_is_ready_exits_with_0(tmp_path: Path) -> None:
    done = doctor({"NPU_FALLBACK_HOOK": "1", "NPU_FALLBACK_DIR": str(tmp_path / "pages")})
    assert (done.returncode, done.stderr) == (0, "")
    assert "  ok       torch_npu " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("no problems, ")
    assert not (tmp_path / "pages").exists()


def test_a_problem_exits_with_1_and_its_next_step_below_it(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ValueError('torn')\n")
    done = doctor({"PYTHONPATH": f"{tmp_path}:{Path.cwd()}", "NPU_FALLBACK_MODE": "stict"})
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if "'stict' is not a mode" in line)
    assert lines[at].startswith("  problem  mode ")
    assert lines[at + 1].lstrip().startswith("-> set it to one of observe")
    assert "ValueError: torn" in done.stdout
    assert "Traceback" not in done.stdout


def test_piped_lines_are_plain_and_aligned(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ValueError('torn')\n")
    done = doctor({"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"})
    assert "\x1b" not in done.stdout
    rows = [
        line for line in done.stdout.splitlines() if line.startswith(("  ok", "  warn", "  prob"))
    ]
    assert len(rows) > 20
    assert {row[9:11] for row in rows} == {"  "}
    assert len({len(row) - len(row[11:].partition("  ")[2].lstrip()) for row in rows}) == 1


def test_json_has_every_finding(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ValueError('torn')\n")
    done = doctor({"PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}, "--format", "json")
    answer = json.loads(done.stdout)
    found = [finding for group in answer["groups"] for finding in group["findings"]]
    assert answer["problems"] == sum(one["status"] == "problem" for one in found) > 0
    assert all(one["next_step"] for one in found if one["status"] != "ok")


def test_every_group_is_examined_though_one_check_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> tuple[()]:
        raise RuntimeError("a defect\nin two lines")

    monkeypatch.setattr(ways_in, "check", fails)
    groups = checkup.examine(machine(tmp_path, torch_seconds=0.01))
    assert len(groups) == 8
    (found,) = groups[2].findings
    assert found.status is Status.PROBLEM
    assert found.text == "cannot be examined: RuntimeError: a defect in two lines"
    assert count(groups, Status.PROBLEM) >= 1


def test_it_runs_where_this_package_is_alone(tmp_path: Path) -> None:
    bare = [sys.executable, "-I", "-S", "-c"]
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from npu_fallback_exporter.cli.main import main\n"
        f"sys.exit(main(['doctor', '--pages', {str(tmp_path)!r}, '--web.listen-address', ':0']))"
    )
    done = subprocess.run(
        [*bare, code],
        env={"NPU_FALLBACK_MODE": "stict"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "off: this Python runs with -S" in done.stdout
    assert "cannot be examined" not in done.stdout
