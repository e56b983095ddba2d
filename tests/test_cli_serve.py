"""``serve`` as its own process, over real sockets."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npu_fallback_exporter.pages.arm_failure import record

from .support.exposition import assert_promtool_is_silent, samples
from .support.page_factory import PageFactory, writer_of

_DEADLINE = 60
_COMMAND = (sys.executable, "-m", "npu_fallback_exporter", "serve", "--no-npu-smi")
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)/metrics")


class _Sidecar:
    """A running exporter."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.started: list[str] = []
        assert process.stderr is not None
        deadline = threading.Timer(_DEADLINE, process.kill)
        deadline.start()
        try:
            for line in process.stderr:
                self.started.append(line)
                if match := _LISTENING.search(line):
                    self.port = int(match[1])
                    return
        finally:
            deadline.cancel()
        raise AssertionError(f"it did not start: {self.started}")

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_DEADLINE)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(_DEADLINE)


@contextmanager
def _serving(*flags: str, **environ: str) -> Iterator[_Sidecar]:
    command = (*_COMMAND, "--web.listen-address", "127.0.0.1:0", *flags)
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environ}
    ) as process:
        try:
            yield _Sidecar(process)
        finally:
            process.kill()


def test_it_answers_with_the_totals_of_all_pages(tmp_path: Path) -> None:
    with writer_of(PageFactory().events("aten::a", 3).write(tmp_path)):
        PageFactory().events("aten::a", 4).write(tmp_path)
        record(tmp_path, "page")
        (tmp_path / "bad.page").touch()
        with _serving("--pages", str(tmp_path)) as sidecar:
            status, text = sidecar.get("/metrics")
    assert status == 200
    assert list(samples(text, "npu_fallback_events_total").values()) == [7]
    assert samples(text, "npu_fallback_processes") == {(): 1}
    assert_promtool_is_silent(text)


def test_pages_of_several_folders_add_up(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        PageFactory().events("aten::a", 3).write(tmp_path / name)
    with _serving("--pages", str(tmp_path / "a"), "--pages", str(tmp_path / "b")) as sidecar:
        _, text = sidecar.get("/metrics")
    assert list(samples(text, "npu_fallback_events_total").values()) == [6]


def test_the_folder_of_the_environment_is_read_when_no_flag_names_one(tmp_path: Path) -> None:
    PageFactory().events("aten::a", 3).write(tmp_path)
    with _serving(NPU_FALLBACK_DIR=str(tmp_path)) as sidecar:
        _, text = sidecar.get("/metrics")
    assert list(samples(text, "npu_fallback_events_total").values()) == [3]


def test_a_folder_that_appears_later_is_read(tmp_path: Path) -> None:
    later = tmp_path / "later"
    with _serving("--pages", str(later)) as sidecar:
        sidecar.get("/metrics")
        later.mkdir()
        PageFactory().events("aten::a", 3).write(later)
        _, text = sidecar.get("/metrics")
    assert any(f"no pages folder {later} yet" in line for line in sidecar.started)
    assert list(samples(text, "npu_fallback_events_total").values()) == [3]


def test_the_folders_it_reads_are_named_at_start(tmp_path: Path) -> None:
    with _serving("--pages", str(tmp_path)) as sidecar:
        pass
    assert any(f"reading pages in {tmp_path}" in line for line in sidecar.started)


def test_flags_bound_and_fold_the_series(tmp_path: Path) -> None:
    page = PageFactory().events("aten::a", 1, npu=0).events("aten::b", 1, npu=1)
    page.write(tmp_path)
    with _serving("--pages", str(tmp_path), "--max-ops", "1", "--fold-npu") as sidecar:
        _, text = sidecar.get("/metrics")
    labels = {
        (dict(key)["op"], dict(key)["npu"]) for key in samples(text, "npu_fallback_events_total")
    }
    assert labels == {("aten::a", "all"), ("__other__", "all")}


def test_it_becomes_ready_without_a_scrape(tmp_path: Path) -> None:
    with _serving("--pages", str(tmp_path)) as sidecar:
        # Each answer takes a turn of the event loop; the first collection needs a few.
        answers = (sidecar.get("/readyz") for _ in range(10_000))
        assert next(answer for answer in answers if answer[0] == 200) == (200, "ready\n")


def test_probes_and_refusals_work_over_the_wire(tmp_path: Path) -> None:
    with _serving("--pages", str(tmp_path)) as sidecar:
        assert sidecar.get("/healthz") == (200, "ok\n")
        assert sidecar.get("/metrics", "HEAD") == (200, "")
        assert sidecar.get("/metrics", "POST")[0] == 405
        assert sidecar.get("/nothing")[0] == 404


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_without_a_word(tmp_path: Path, number: signal.Signals) -> None:
    with _serving("--pages", str(tmp_path)) as sidecar:
        sidecar.get("/metrics")
        assert sidecar.end(number) == 0
        assert sidecar.process.stderr is not None
        assert sidecar.process.stderr.read() == ""


def test_a_client_that_keeps_its_connection_open_does_not_keep_it_from_ending(
    tmp_path: Path,
) -> None:
    with (
        _serving("--pages", str(tmp_path)) as sidecar,
        socket.create_connection(("127.0.0.1", sidecar.port), _DEADLINE) as silent,
    ):
        silent.sendall(b"GET /metr")
        sidecar.get("/healthz")
        assert sidecar.end(signal.SIGTERM) == 0


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="needs root and util-linux for a pid namespace of its own",
)
def test_sigterm_ends_it_with_0_as_pid_1_too(tmp_path: Path) -> None:
    script = (
        "import os, runpy, sys; print(os.getpid(), flush=True); "
        "sys.argv = ['x', *sys.argv[1:]]; runpy.run_module('npu_fallback_exporter', alter_sys=True)"
    )
    arguments = (
        "serve",
        "--no-npu-smi",
        "--web.listen-address",
        "127.0.0.1:0",
        "--pages",
        str(tmp_path),
    )
    command = ("unshare", "--pid", "--fork", sys.executable, "-c", script, *arguments)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            _Sidecar(process)
            assert process.stdout is not None
            assert process.stdout.readline() == "1\n"
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGTERM)
            assert process.wait(_DEADLINE) == 0
        finally:
            process.kill()


def test_a_port_in_use_is_one_line_with_the_next_step(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = subprocess.run(
            (*_COMMAND, "--web.listen-address", address, "--pages", str(tmp_path)),
            capture_output=True,
            text=True,
            timeout=_DEADLINE,
            check=False,
        )
    assert result.returncode == 1
    assert result.stderr == (
        f"npu-fallback-exporter: cannot listen on {address} (Address already in use): "
        "end what listens there, or choose another port with --web.listen-address\n"
    )


def test_neither_torch_nor_the_server_side_is_imported() -> None:
    code = (
        "import json, sys\n"
        "from npu_fallback_exporter.cli import serve\n"
        "import npu_fallback_exporter.web.server\n"
        "import npu_fallback_exporter.collectors.fallback\n"
        "print(json.dumps(list(sys.modules)))"
    )
    result = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, timeout=_DEADLINE, check=True
    )
    modules = set(json.loads(result.stdout))
    assert not {name for name in modules if name.split(".")[0] in {"torch", "torch_npu"}}
    assert not {name for name in modules if name.startswith("npu_fallback_exporter.instrument")}


def test_what_the_server_process_needs_of_the_pages_is_light() -> None:
    code = (
        "import json, sys\n"
        "import npu_fallback_exporter.pages.arm_failure, npu_fallback_exporter.pages.discovery\n"
        "print(json.dumps(list(sys.modules)))"
    )
    result = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, timeout=_DEADLINE, check=True
    )
    assert not {"prometheus_client", "uvicorn", "torch"} & set(json.loads(result.stdout))
