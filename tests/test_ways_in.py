"""The ways into a server that knows nothing of this package, and into what it starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.page import read_page
from tests.support.child import child_environment
from tests.support.injected import injected_folder, plain_python

pytestmark = pytest.mark.usefixtures("hook_is_built")

SERVER = """
import torch_npu, torch

def work():
    return torch.lgamma(torch.ones(4).npu())

if __name__ == "__main__":
    work()
    print("served")
"""

WEB_SERVER = """
import os
import torch_npu, torch

def work():
    torch.lgamma(torch.ones(4).npu())
    return str(os.getpid()).encode()

async def asgi(scope, receive, send):
    body = work()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})

def wsgi(environ, start_response):
    body = work()
    start_response("200 OK", [])
    return [body]
"""

DEADLINE_SECONDS = 120


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return tmp_path / "pages"


def events(pages: Path) -> list[int]:
    """Events of each process that has a page."""
    return sorted(
        sum(slot.events for slot in read_page(str(path)).page.slots.values())
        for path in pages.glob("*.page")
    )


def run(command: list[str | Path], pages: Path, **variables: str) -> str:
    """Run a server to its end with an empty PYTHONPATH, and return what it printed."""
    environment = child_environment({"NPU_FALLBACK_DIR": str(pages), "PYTHONPATH": "", **variables})
    done = subprocess.run(
        command,
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Three ways in


def test_the_package_installed_and_a_variable_are_enough(server: Path, pages: Path) -> None:
    assert "served" in run([sys.executable, server], pages, NPU_FALLBACK_HOOK="1")
    assert events(pages) == [1]


def test_run_arms_what_it_starts(server: Path, pages: Path) -> None:
    verb = [sys.executable, "-m", "npu_fallback_exporter", "run", "--no-serve", "--"]
    assert "served" in run([*verb, sys.executable, server], pages)
    assert events(pages) == [1]


def test_a_folder_in_pythonpath_arms_a_python_without_the_package(
    server: Path, pages: Path
) -> None:
    injected = {"PYTHONPATH": str(injected_folder()), "XDG_CACHE_HOME": str(server.parent)}
    assert "served" in run([plain_python(), server], pages, NPU_FALLBACK_HOOK="1", **injected)
    assert events(pages) == [1]


def test_without_that_folder_the_same_python_counts_nothing(server: Path, pages: Path) -> None:
    assert "served" in run([plain_python(), server], pages, NPU_FALLBACK_HOOK="1")
    assert events(pages) == []


def test_a_folder_in_pythonpath_does_nothing_unless_the_environment_asks(
    server: Path, pages: Path
) -> None:
    assert "served" in run([plain_python(), server], pages, PYTHONPATH=str(injected_folder()))
    assert not pages.exists()


# Entry points, alone: the variable is set too late for the start-up file.

_ASKS_LATE = "import os; os.environ['NPU_FALLBACK_HOOK'] = '1'; "
_LIKE_VLLM = """
import os, importlib.metadata
import torch
allowed = os.environ.get("VLLM_PLUGINS")
for plugin in importlib.metadata.entry_points(group="vllm.general_plugins"):
    if allowed is None or plugin.name in allowed.split(","):
        plugin.load()()
"""
_WORK = "\nimport torch, torch_npu; torch.lgamma(torch.ones(4).npu())"


def test_pytorchs_entry_point_arms(pages: Path) -> None:
    run([sys.executable, "-c", _ASKS_LATE + "import torch" + _WORK], pages)
    assert events(pages) == [1]


def test_vllms_plugins_arm_where_pytorchs_entry_points_are_off(pages: Path) -> None:
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    run([sys.executable, "-c", _ASKS_LATE + _LIKE_VLLM + _WORK], pages, **off)
    assert events(pages) == [1]


def test_a_list_of_vllms_plugins_without_ours_leaves_the_start_up_file(pages: Path) -> None:
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "VLLM_PLUGINS": "ascend"}
    run([sys.executable, "-c", _LIKE_VLLM + _WORK], pages, NPU_FALLBACK_HOOK="1", **off)
    assert events(pages) == [1]


# Ways to start Python


@pytest.mark.parametrize(
    ("flag", "installed", "counted"),
    [
        pytest.param("-E", True, [1], id="-E, installed"),
        pytest.param("-I", True, [1], id="-I, installed"),
        pytest.param("-I", False, [], id="-I, injected: PYTHONPATH is not read"),
    ],
)
def test_flags_of_python(
    server: Path, pages: Path, flag: str, installed: bool, counted: list[int]
) -> None:
    python = sys.executable if installed else plain_python()
    path = "" if installed else str(injected_folder())
    run([python, flag, server], pages, NPU_FALLBACK_HOOK="1", PYTHONPATH=path)
    assert events(pages) == counted


@pytest.mark.parametrize(
    ("first", "counted"),
    [("torch", [1]), ("torch_npu", [])],
    ids=["torch first", "torch_npu first"],
)
def test_without_site_only_pytorchs_entry_point_is_left(
    pages: Path, first: str, counted: list[int]
) -> None:
    # The paths of site, as a server that runs with -S must add them.
    paths = os.pathsep.join(path for path in sys.path if path)
    code = f"import {first}{_WORK}"
    run([sys.executable, "-S", "-c", code], pages, NPU_FALLBACK_HOOK="1", PYTHONPATH=paths)
    assert events(pages) == counted


# What a server starts


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_of_multiprocessing_count_each_in_a_page_of_their_own(
    server: Path, pages: Path, method: str
) -> None:
    code = f"""
import multiprocessing, sys
sys.path.insert(0, {str(server.parent)!r})
import torch, torch_npu, server
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    workers = [context.Process(target=server.work) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    sys.exit(sum(worker.exitcode for worker in workers))
"""
    main = server.with_name("main.py")
    main.write_text(code)
    run([sys.executable, main], pages, NPU_FALLBACK_HOOK="1")
    assert [count for count in events(pages) if count] == [1, 1]


@pytest.mark.slow
def test_workers_of_torchrun_count_each_in_a_page_of_their_own(server: Path, pages: Path) -> None:
    launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1"]
    run([sys.executable, *launch, "--master-port=0", server], pages, NPU_FALLBACK_HOOK="1")
    assert [count for count in events(pages) if count] == [1, 1]


def test_children_that_are_no_python_notice_nothing(server: Path, pages: Path) -> None:
    server.write_text(
        SERVER + "    import subprocess\n    print(subprocess.run(['bash', '-c', 'echo own; ls /'],"
        " capture_output=True, text=True))\n"
    )
    verb = [sys.executable, "-m", "npu_fallback_exporter", "run", "--no-serve", "--"]
    printed = run([*verb, sys.executable, server], pages)
    plain = subprocess.run(
        ["bash", "-c", "echo own; ls /"], capture_output=True, text=True, check=True
    )
    assert f"returncode=0, stdout={plain.stdout!r}, stderr=''" in printed
    assert events(pages) == [1]


# Web servers


@contextmanager
def web_server(command: list[str], folder: Path, pages: Path, address: str) -> Iterator[str]:
    """Run a web server on a socket that listens already, so that no request comes too early."""
    (folder / "web_server.py").write_text(WEB_SERVER)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.set_inheritable(True)
        process = subprocess.Popen(
            [sys.executable, "-m", *command, address.format(listening.fileno())],
            env=child_environment(
                {"NPU_FALLBACK_DIR": str(pages), "NPU_FALLBACK_HOOK": "1", "PYTHONPATH": ""}
            ),
            cwd=folder,
            pass_fds=[listening.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            process.terminate()
            process.wait(DEADLINE_SECONDS)


def answered_by(url: str) -> str:
    with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as reply:
        pid: str = reply.read().decode()
    return pid


@pytest.mark.slow
def test_every_worker_of_uvicorn_counts(tmp_path: Path, pages: Path) -> None:
    uvicorn = ["uvicorn", "web_server:asgi", "--lifespan=off", "--workers=2"]
    with web_server(uvicorn, tmp_path, pages, "--fd={}") as url:
        for _ in range(20):
            answered_by(url)
        assert sum(events(pages)) == 20


@pytest.mark.slow
def test_a_reload_of_uvicorn_loses_nothing(tmp_path: Path, pages: Path) -> None:
    uvicorn = ["uvicorn", "web_server:asgi", "--lifespan=off", "--reload", "--reload-dir=."]
    with web_server(uvicorn, tmp_path, pages, "--fd={}") as url:
        first = answered_by(url)
        requests = 1
        source = tmp_path / "web_server.py"
        source.write_text(WEB_SERVER + "\n")
        end = time.monotonic() + DEADLINE_SECONDS
        later = first
        while later == first and time.monotonic() < end:
            later = answered_by(url)
            requests += 1
        assert later != first
        assert sum(events(pages)) == requests


@pytest.mark.slow
def test_workers_forked_from_a_preloaded_application_count(tmp_path: Path, pages: Path) -> None:
    gunicorn = ["gunicorn", "web_server:wsgi", "--preload", "--workers=2"]
    with web_server(gunicorn, tmp_path, pages, "--bind=fd://{}") as url:
        workers = {answered_by(url) for _ in range(20)}
        counted = [count for count in events(pages) if count]
        assert (sum(counted), len(counted)) == (20, len(workers))
