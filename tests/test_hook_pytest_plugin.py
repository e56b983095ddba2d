"""The marker and the fixture ``no_npu_fallback``, in a pytest run of its own."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.child import child_environment

pytestmark = pytest.mark.usefixtures("hook_is_built")

USER_TESTS = """\
import pytest
import torch
import torch_npu


@pytest.fixture
def x():
    return torch.lgamma(torch.ones(4).npu())  # before the body: not watched


@pytest.mark.no_npu_fallback
def test_on_the_npu(x):
    assert (x + 1).cpu().sum() == 4


@pytest.mark.no_npu_fallback
def test_falls_back(x):
    for _ in range(3):
        torch.lgamma(x)


def test_falls_back_by_fixture(x, no_npu_fallback):
    torch.lgamma(x)


@pytest.mark.no_npu_fallback(allow=["torch.lgamma"])
def test_is_allowed(x):
    torch.lgamma(x)


@pytest.mark.no_npu_fallback(allow=["torch.lgamma"])
def test_other_is_not_allowed(x):
    torch.fmax(torch.lgamma(x), x)


@pytest.mark.no_npu_fallback
def test_explicit_kernel(x):
    torch.var(x.reshape(2, 2), 1, correction=0.5)


@pytest.mark.no_npu_fallback(allow=["no name"])
def test_bad_name(x):
    pass


@pytest.mark.no_npu_fallback(forbid=["torch.lgamma"])
def test_bad_argument(x):
    pass


@pytest.mark.no_npu_fallback
def test_fails_by_itself(x):
    assert torch.lgamma(x).cpu().sum() == 1


def test_not_watched(x):
    torch.lgamma(x)
"""

LGAMMA_LINE = USER_TESTS.splitlines().index("        torch.lgamma(x)") + 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    """Outcome by test, and everything that was printed."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "test_user.py").write_text(USER_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--color=no", "-p", "no:cacheprovider", folder],
        cwd=folder,
        env=child_environment({"NPU_FALLBACK_DIR": str(folder)}),
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = re.findall(r"::test_(\w+) (PASSED|FAILED|ERROR)", done.stdout)
    return dict(outcomes), done.stdout


def section(printed: str, test: str) -> str:
    """What the run printed of one failed test."""
    return printed.partition(f"_ test_{test} _")[2].partition("\n____")[0]


def test_only_tests_that_fall_back_without_leave_fail(run: tuple[dict[str, str], str]) -> None:
    assert run[0] == {
        "on_the_npu": "PASSED",
        "falls_back": "FAILED",
        "falls_back_by_fixture": "FAILED",
        "is_allowed": "PASSED",
        "other_is_not_allowed": "FAILED",
        "explicit_kernel": "FAILED",
        "bad_name": "FAILED",
        "bad_argument": "FAILED",
        "fails_by_itself": "FAILED",
        "not_watched": "PASSED",
    }


def test_a_failure_names_operator_number_and_line(run: tuple[dict[str, str], str]) -> None:
    told = section(run[1], "falls_back")
    assert "aten::lgamma.out: 3 times" in told
    assert f"test_user.py:{LGAMMA_LINE} in test_falls_back" in told
    assert '@pytest.mark.no_npu_fallback(allow=["aten::lgamma.out"])' in told


def test_what_is_allowed_is_not_in_the_report(run: tuple[dict[str, str], str]) -> None:
    told = section(run[1], "other_is_not_allowed")
    assert "aten::fmax.out: 1 time\n" in told
    assert "lgamma" not in told.partition("to allow them")[0]


def test_a_kernel_that_computes_on_the_host_is_reported(run: tuple[dict[str, str], str]) -> None:
    assert "aten::var.correction: 1 time\n" in section(run[1], "explicit_kernel")


def test_a_name_that_is_none_is_told(run: tuple[dict[str, str], str]) -> None:
    assert "no name" in section(run[1], "bad_name")


def test_a_test_that_fails_by_itself_keeps_its_own_error(run: tuple[dict[str, str], str]) -> None:
    told = section(run[1], "fails_by_itself")
    assert "AssertionError" in told
    assert "aten::lgamma.out: 1 time" in told
