"""Flags of ``gate``, and what it says when Prometheus does not answer."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from npu_fallback_exporter.cli.main import main
from tests.support.canary_scenarios import BASELINE, Canaries
from tests.support.prometheus_process import free_port, needs_prometheus

SIDES = ('--baseline=job="a"', '--candidate=job="b"')


@contextmanager
def answering(status: int, body: str) -> Iterator[tuple[str, list[str | None]]]:
    """Run a server that always says the same; gives its address, and who asked."""
    asked: list[str | None] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.headers.get("Authorization"))
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "two sides are needed, from one place: give --prometheus, --baseline and"),
        (("--prometheus=http://x", SIDES[0]), "two sides are needed"),
        ((*SIDES, "--prometheus=http://x", "--baseline-scrapes", "a", "b"), "two sides are needed"),
        (("--prometheus=http://x", "--baseline={}", SIDES[1]), "an empty selector selects every"),
        (("--prometheus=http://x", *SIDES, "--since=9", "--at=8"), "the window ends before it st"),
        (
            ("--prometheus=http://x", *SIDES, "--prometheus.ca-file=/no/such"),
            "cannot use /no/such as certificates",
        ),
        (
            ("--prometheus=http://x", *SIDES, "--prometheus.bearer-token-file=/no/such"),
            "cannot read /no/such",
        ),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error_in_one_line(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *flags]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert said in error


@pytest.mark.parametrize(
    "flag",
    [
        "--prometheus=prometheus:9090",
        "--window=15",
        "--window=9999w",
        "--warmup=soon",
        "--since=yesterday",
        "--at=-1",
        "--min-operators=0",
        "--alpha=1",
        "--max-time-ratio=0.5",
        "--max-syncs-ratio=nan",
    ],
)
def test_a_wrong_value_is_a_usage_error_that_names_it(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["gate", flag])
    assert caught.value.code == 2
    assert repr(flag.partition("=")[2]) in capsys.readouterr().err


def test_a_prometheus_that_does_not_answer_is_no_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["gate", f"--prometheus={url}", *SIDES]) == 3
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "inconclusive"
    assert f"no answer from Prometheus at {url}" in verdict["reasons"][0]["message"]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, "<html>", 3),
        (200, "{}", 3),
        (503, "starting", 3),
        (401, "who are you", 3),
        (400, '{"error": "parse error"}', 2),
    ],
)
def test_only_a_wrong_selector_is_the_users_fault(
    status: int, body: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(status, body) as (url, _):
        assert main(["gate", f"--prometheus={url}", *SIDES]) == code
    out, error = capsys.readouterr()
    assert (out == "") == (code == 2)
    assert ("parse error" in error) == (code == 2)


@pytest.mark.parametrize(
    ("flag", "secret", "header"),
    [
        ("bearer-token-file", "abc\n", "Bearer abc"),
        ("basic-auth-file", "me:secret\n", "Basic bWU6c2VjcmV0"),
    ],
)
def test_secrets_come_from_files(
    tmp_path: Path, flag: str, secret: str, header: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "secret").write_text(secret, encoding="utf-8")
    with answering(200, '{"data": {"result": []}}') as (url, asked):
        main(["gate", f"--prometheus={url}", *SIDES, f"--prometheus.{flag}={path}"])
    assert set(asked) == {header}
    assert secret.strip() not in capsys.readouterr().out


@needs_prometheus
def test_a_side_is_not_compared_with_itself(
    canaries: Canaries, capsys: pytest.CaptureFixture[str]
) -> None:
    same = f'namespace="clean",revision="{BASELINE}"'
    flags = [f"--prometheus=http://{canaries.address}", f"--at={canaries.end}"]
    assert main(["gate", *flags, f"--baseline={same}", f"--candidate={same}"]) == 2
    assert "--baseline and --candidate both select 10.0.0.0:10837" in capsys.readouterr().err


@needs_prometheus
@pytest.mark.parametrize("selector", ['namespace="clean', "namespace=clean", "{}}"])
def test_prometheus_says_what_is_wrong_with_a_selector(
    canaries: Canaries, selector: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = (f"--baseline={selector}", SIDES[1])
    assert main(["gate", f"--prometheus=http://{canaries.address}", *sides]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert "says 400: " in error


@needs_prometheus
def test_a_gate_set_after_ready_leaves_out_the_loading(
    canaries: Canaries, capsys: pytest.CaptureFixture[str]
) -> None:
    """The candidate of this row began 1,500 s before the end and had loaded a minute later."""
    sides = [
        f'--{side}=namespace="loading",workload="{workload}"'
        for side, workload in (("baseline", "api-primary"), ("candidate", "api"))
    ]
    flags = [f"--prometheus=http://{canaries.address}", f"--at={canaries.end}", *sides]
    loading = []
    for start in (f"--since={canaries.end - 1380}", f"--since={canaries.end - 1530}"):
        assert main(["gate", *flags, start, "--warmup=0s"]) == 0
        checks = json.loads(capsys.readouterr().out)["checks"]
        loading.append([check["op"] for check in checks if check["check"] == "new_op"])
    assert loading == [[], ["aten::lgamma.out"]]
