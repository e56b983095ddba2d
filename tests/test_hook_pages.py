"""What happens to the pages of real servers: kills, full and read-only folders, cut pages."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.page import read_page

from .support.child import child_environment, run_python
from .support.exporter_process import serving, wait_until
from .support.exposition import samples
from .support.in_process_exporter import InProcessExporter

pytestmark = pytest.mark.usefixtures("hook_is_built")


def _on(folder: Path, **variables: str) -> dict[str, str]:
    return {"NPU_FALLBACK_DIR": str(folder), "NPU_FALLBACK_MODE": "observe", **variables}


SPAWNED = """
import multiprocessing, sys

def work(rank, pipe):
    import torch, torch_npu
    torch.npu.set_device(rank % 2)
    x = torch.ones(16).npu()
    if rank == 2:
        torch.lgamma(x)
    pipe.send((rank, multiprocessing.current_process().pid))
    pipe.recv()

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(4)]
    workers = [
        context.Process(target=work, args=(rank, theirs)) for rank, (_, theirs) in enumerate(pipes)
    ]
    for worker in workers:
        worker.start()
    for ours, _ in pipes:
        print(*ours.recv(), flush=True)
    sys.stdin.readline()
    for ours, _ in pipes:
        ours.send("end")
    for worker in workers:
        worker.join()
    print(*(worker.exitcode for worker in workers))
"""


def test_counts_of_a_spawned_worker_stay_in_every_scrape_after_it_was_killed(
    tmp_path: Path,
) -> None:
    script, pages = tmp_path / "server.py", tmp_path / "pages"
    script.write_text(SPAWNED)
    pages.mkdir()
    with (
        serving("--no-npu-smi", pages=pages) as exporter,
        subprocess.Popen(
            [sys.executable, str(script)],
            env=child_environment(_on(pages)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server,
    ):
        lines = _four_lines(server)
        pids = {int(rank): int(pid) for rank, pid in map(str.split, lines)}

        def on_both_devices() -> tuple[float, float]:
            found = samples(exporter.scrape()[0], "npu_fallback_kind_events_total")
            by_npu = {
                dict(labels)["npu"]: value
                for labels, value in found.items()
                if dict(labels)["kind"] == "dispatcher"
            }
            return by_npu["logical-0"], by_npu.get("logical-1", 0.0)

        assert on_both_devices() == (1.0, 0.0)
        os.kill(pids[2], signal.SIGKILL)
        finished = ("npu_fallback_processes_finished_total", ())
        wait_until(lambda: exporter.values()[finished] == 1)
        assert [on_both_devices() for _ in range(3)] == [(1.0, 0.0)] * 3
        try:
            out, _ = server.communicate("\n", timeout=60)
        finally:
            server.kill()
    assert out.split() == ["0", "0", "-9", "0"]
    assert InProcessExporter(pages).events() == {"aten::lgamma.out": 1}


def _four_lines(server: subprocess.Popen[str]) -> list[str]:
    assert server.stdout is not None
    lines: list[str] = []
    for line in server.stdout:
        if line[0].isdigit():
            lines.append(line)
        if len(lines) == 4:
            break
    return lines


CUT = """
import os, torch, torch_npu
import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument import arming
x = torch.ones(4).npu()
torch.lgamma(x)
os.truncate(arming.hook().page_path, 0)
for _ in range(3):
    torch.lgamma(x)
torch.erfinv(x * 0)
nfe.set_mode("strict")
try:
    torch.lgamma(x)
except RuntimeError as error:
    print("npu-fallback-exporter refuses" in str(error))
nfe.uninstall()
print(torch.lgamma(x).tolist())
"""


def test_a_server_whose_page_is_cut_lives_on_and_its_mode_stays_in_force(tmp_path: Path) -> None:
    done = run_python(CUT, _on(tmp_path))
    assert (done.returncode, done.stdout.splitlines()) == (0, ["True", "[0.0, 0.0, 0.0, 0.0]"])
    (line,) = done.own_lines
    assert line.endswith(".page was cut: find out who writes to it, then restart")
    assert InProcessExporter(tmp_path).look().live.unreadable == {"empty": 1}


SERVED = """
import os, sys, torch, torch_npu
from pathlib import Path
from tests.support.exporter_process import serving
torch.lgamma(torch.ones(4).npu())
with serving("--no-npu-smi", pages=Path(os.environ["NPU_FALLBACK_DIR"])) as exporter:
    print(exporter.values()["npu_fallback_processes", ()])
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and util-linux"
)
@pytest.mark.parametrize(
    ("options", "why"),
    [("size=256k", "no room for a page of"), ("ro", "cannot write in pages folder")],
    ids=["full", "read-only"],
)
def test_a_server_whose_folder_takes_no_page_is_unharmed_and_the_exporter_answers(
    tmp_path: Path, options: str, why: str
) -> None:
    script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    done = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c", script, "sh", options, str(tmp_path)),
            *(sys.executable, "-c", SERVED),
        ],
        env=child_environment(_on(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["0.0"]), done.stderr
    own = [line for line in done.stderr.splitlines() if "npu-fallback-exporter" in line]
    assert len(own) == 1
    assert f"not armed, nothing is counted: {why}" in own[0]
    assert "set NPU_FALLBACK_DIR" in own[0]


def test_a_forked_child_adds_up_with_its_parent_in_one_scrape(tmp_path: Path) -> None:
    code = """
import os, torch, torch_npu
print(torch.npu.is_initialized(), flush=True)
if os.fork() == 0:
    for _ in range(3):
        torch.lgamma(torch.ones(4).npu())
    os._exit(0)
os.wait()
torch.lgamma(torch.ones(4).npu())
"""
    done = run_python(code, _on(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, "False")
    assert len({read_page(str(path)).page.identity for path in tmp_path.glob("*.page")}) == 2
    exporter = InProcessExporter(tmp_path)
    assert exporter.events() == {"aten::lgamma.out": 4}
    assert exporter.totals.processes_finished == 2
