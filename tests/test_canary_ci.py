"""The CI example, with a real server on the simulated device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.canary_tools import CANARY
from tests.support.child import child_environment
from tests.support.prometheus_process import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("hook_is_built"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl: apt-get install curl"),
]

#: Answers every request after 4,000 operators; falls back on what its arguments name.
SERVER = """
import http.server, pathlib, sys
port = pathlib.Path("port")
port.unlink(missing_ok=True)  # that of the version before
import torch, torch_npu
x = torch.ones(4).npu()
torch.linalg.inv(torch.eye(2).npu())  # while loading
ops = [getattr(torch, name) for name in sys.argv[1:]]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        for op in ops if self.path == "/work" else ():
            op(x)
        for _ in range(4000 if self.path == "/work" else 0):
            torch.relu(x)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
port.write_text(str(server.server_port))
server.serve_forever()
"""


def gate(tmp_path: Path, baseline: str, candidate: str, *flags: str) -> tuple[int, dict[str, Any]]:
    (server := tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    commands = {
        name: f"{sys.executable} {server} {ops}"
        for name, ops in (("BASELINE", baseline), ("CANDIDATE", candidate))
    }
    settings = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "EXPORTER": f"127.0.0.1:{free_port()}",
        "READY": "curl -fsS http://127.0.0.1:$(cat port)/",
        "LOAD": "curl -fsS http://127.0.0.1:$(cat port)/work",
        "TMPFS": str(tmp_path),
    }
    done = subprocess.run(
        [CANARY / "ci" / "gate.sh", *flags],
        env=child_environment({**commands, **settings}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    # The servers' own output comes before the verdict.
    start = done.stdout.find("{\n")
    assert start >= 0, done.stderr
    return done.returncode, json.loads(done.stdout[start:])


def test_a_new_version_that_falls_back_anew_fails(tmp_path: Path) -> None:
    code, verdict = gate(tmp_path, "lgamma", " ".join(["lgamma", *["digamma"] * 10]))
    assert (code, next(reason["op"] for reason in verdict["reasons"])) == (1, "aten::digamma.out")
    assert verdict["baseline"]["fallbacks"] == 1
    assert verdict["candidate"]["fallbacks"] == 11
    assert not list(tmp_path.glob("tmp.*"))


def test_a_new_version_that_is_like_the_old_one_passes(tmp_path: Path) -> None:
    code, verdict = gate(tmp_path, "lgamma", "lgamma", "--min-operators", "4000")
    assert (code, verdict["verdict"]) == (0, "pass"), verdict


@pytest.mark.parametrize("missing", ["BASELINE", "CANDIDATE", "READY", "LOAD"])
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    given = dict.fromkeys(("BASELINE", "CANDIDATE", "READY", "LOAD"), "true")
    del given[missing]
    done = subprocess.run(
        [CANARY / "ci" / "gate.sh"],
        env=child_environment(given),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode != 0
    assert missing in done.stderr
