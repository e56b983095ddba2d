"""Changing at run time what may fall back: modes, rules per operator, and forbidding blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument.arming import hook
from npu_fallback_exporter.pages.page import read_page
from tests.support.child import run_python
from tests.support.hooked import arm, armed, measured


@pytest.fixture(autouse=True)
def _armed() -> Iterator[None]:
    with armed():
        yield


@pytest.fixture
def x() -> torch.Tensor:
    return torch.ones(2, 3).npu()


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(RuntimeError, match="npu-fallback-exporter refuses") as caught:
        call()
    return str(caught.value)


# Modes


def test_strict_mode_can_be_set_and_taken_back_while_armed(x: torch.Tensor) -> None:
    torch.lgamma(x)
    nfe.set_mode("strict")
    refused(lambda: torch.lgamma(x))
    nfe.set_mode("observe")
    torch.lgamma(x)


def test_a_mode_that_was_set_is_shown_with_its_source() -> None:
    nfe.set_mode("strict")
    armed_hook = hook()
    assert armed_hook is not None
    page = read_page(str(armed_hook.page_path)).page
    assert (page.mode, page.mode_source) == ("strict", "api")


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(nfe.ConfigError, match="mode='strct' is not a mode: set it to one of"):
        nfe.set_mode("strct")


def test_a_mode_cannot_be_set_where_nothing_is_armed() -> None:
    nfe.uninstall()
    with pytest.raises(nfe.ArmError, match=r"call npu_fallback_exporter\.install\(\) first"):
        nfe.set_mode("strict")


def test_disarming_forgets_the_mode_that_was_set(x: torch.Tensor) -> None:
    nfe.set_mode("strict")
    nfe.uninstall()
    nfe.install()
    torch.lgamma(x)


def test_a_mode_that_is_set_before_torch_npu_is_imported_holds_after_it() -> None:
    done = run_python(
        """
import npu_fallback_exporter as nfe
print(nfe.install("observe"))
nfe.set_mode("strict")
nfe.set_op_policy("torch.digamma", "allow")
import torch, torch_npu
x = torch.ones(2).npu()
torch.digamma(x)
try:
    torch.lgamma(x)
except RuntimeError as error:
    print(str(error).split(" on ")[0])
""",
        {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )
    assert done.stdout.splitlines() == ["False", "npu-fallback-exporter refuses aten::lgamma.out"]


# Rules per operator


@pytest.mark.parametrize("name", ["aten::lgamma.out", "aten::lgamma", "aten::lg*", "torch.lgamma"])
def test_an_operator_that_is_allowed_falls_back_in_strict_mode(x: torch.Tensor, name: str) -> None:
    nfe.set_mode("strict")
    nfe.set_op_policy(name, "allow")
    torch.lgamma(x)
    refused(lambda: torch.digamma(x))


def test_an_operator_that_is_blocked_is_refused_in_every_mode(x: torch.Tensor) -> None:
    nfe.set_op_policy("torch.lgamma", "block")
    for mode in ("observe", "warn", "strict"):
        nfe.set_mode(mode)
        assert 'set_op_policy("aten::lgamma.out", "allow")' in refused(lambda: torch.lgamma(x))
    nfe.set_mode("observe")
    torch.digamma(x)


def test_later_rules_win(x: torch.Tensor) -> None:
    nfe.set_op_policy("aten::*", "block")
    nfe.set_op_policy("aten::lgamma", "allow")
    torch.lgamma(x)
    nfe.set_op_policy("torch.lgamma", "block")
    refused(lambda: torch.lgamma(x))


def test_a_rule_wins_over_the_allow_list_of_the_environment(
    x: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPU_FALLBACK_ALLOW", "torch.lgamma")
    arm("strict")
    torch.lgamma(x)
    nfe.set_op_policy("torch.lgamma", "block")
    refused(lambda: torch.lgamma(x))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("torch.linalg.inv", lambda x: torch.linalg.inv(x)),
        ("torch.linalg.lu_factor", lambda x: torch.linalg.lu_factor(x)),
        ("torch.cholesky_solve", lambda x: torch.cholesky_solve(x, x)),
        ("torch.det", lambda x: torch.det(x)),
        ("torch.histogramdd", lambda x: torch.histogramdd(x, [2, 2, 2])),
        ("torch.special.gammainc", lambda x: torch.special.gammainc(x + 1, x + 1)),
        ("torch.special.gammaln", lambda x: torch.special.gammaln(x + 1)),
        ("torch.special.i0", lambda x: torch.special.i0(x)),
        ("torch.linalg.eigvalsh", lambda x: torch.linalg.eigvalsh(x)),
        ("torch.linalg.solve", lambda x: torch.linalg.solve(x, x)),
        ("torch.logcumsumexp", lambda x: torch.logcumsumexp(x, 0)),
        ("torch.Tensor.digamma_", lambda x: (x + 1).digamma_()),
        ("torch.nn.functional.huber_loss", lambda x: torch.nn.functional.huber_loss(x, x)),
    ],
)
def test_a_python_name_covers_the_operator_that_falls_back(
    name: str, call: Callable[[torch.Tensor], object]
) -> None:
    x = (2 * torch.eye(3)).npu()
    nfe.set_mode("strict")
    refused(lambda: call(x))
    nfe.set_op_policy(name, "allow")
    with measured() as seen:
        call(x)
    assert sum(seen.events.values()) > 0


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(nfe.ConfigError, match="policy 'cpu' is not known: use 'allow' or 'block'"):
        nfe.set_op_policy("torch.lgamma", "cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["lgamma", "", "aten:lgamma", "lgamma.out"])
def test_a_rule_on_what_is_no_operator_is_refused(name: str) -> None:
    with pytest.raises(nfe.ConfigError, match="names no operator: name it as in aten::fmax"):
        nfe.set_op_policy(name, "allow")


# Blocks that forbid


def test_a_block_refuses_in_observe_mode_and_only_inside(x: torch.Tensor) -> None:
    torch.lgamma(x)
    with measured() as seen, nfe.forbid_fallback():
        error = refused(lambda: torch.lgamma(x))
    torch.lgamma(x)
    assert seen.blocked == {"aten::lgamma.out": 1}
    assert seen.ledger_bytes == (0, 0)
    assert "aten::lgamma.out on npu:0" in error
    assert "kind dispatcher: no NPU kernel is registered" in error
    assert 'forbid_fallback(allow=["aten::lgamma.out"])' in error


def test_a_block_lets_through_what_it_allows_and_operators_with_an_npu_kernel(
    x: torch.Tensor,
) -> None:
    with nfe.forbid_fallback(allow=["torch.lgamma"]):
        torch.lgamma(x + x)
        refused(lambda: torch.digamma(x))


def test_a_block_does_not_allow_what_the_mode_refuses(x: torch.Tensor) -> None:
    nfe.set_mode("strict")
    with nfe.forbid_fallback(allow=["torch.lgamma"]):
        refused(lambda: torch.lgamma(x))


def test_a_rule_that_allows_does_not_reach_into_a_block(x: torch.Tensor) -> None:
    nfe.set_op_policy("torch.lgamma", "allow")
    with nfe.forbid_fallback():
        refused(lambda: torch.lgamma(x))


def test_blocks_nest_and_each_must_allow(x: torch.Tensor) -> None:
    with nfe.forbid_fallback(allow=["torch.lgamma", "torch.digamma"]):
        with nfe.forbid_fallback(allow=["torch.lgamma", "torch.i0"]):
            torch.lgamma(x)
            refused(lambda: torch.digamma(x))
            refused(lambda: torch.i0(x))
        torch.digamma(x)


def test_a_block_that_is_left_by_an_exception_has_ended(x: torch.Tensor) -> None:
    with pytest.raises(ZeroDivisionError), nfe.forbid_fallback():
        raise ZeroDivisionError
    torch.lgamma(x)


def test_a_block_holds_in_its_own_thread_only(x: torch.Tensor) -> None:
    raised: list[BaseException] = []

    def work() -> None:
        try:
            torch.lgamma(x)
        except RuntimeError as error:
            raised.append(error)

    with nfe.forbid_fallback():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert raised == []


def test_a_function_can_be_decorated(x: torch.Tensor) -> None:
    @nfe.forbid_fallback()
    def function() -> None:
        torch.lgamma(x)

    refused(function)
    refused(function)
    torch.lgamma(x)


def test_a_block_where_nothing_is_armed_raises_when_it_begins() -> None:
    nfe.uninstall()
    with pytest.raises(nfe.ArmError, match="forbids nothing"), nfe.forbid_fallback():
        pass


def test_a_block_in_which_the_hook_is_disarmed_raises_when_it_ends() -> None:
    with pytest.raises(nfe.ArmError, match="has not forbidden"), nfe.forbid_fallback():
        nfe.uninstall()


def test_a_block_with_one_name_in_place_of_a_list_takes_it(x: torch.Tensor) -> None:
    with nfe.forbid_fallback(allow="torch.lgamma"):
        torch.lgamma(x)


def test_a_block_goes_on_in_a_forked_child() -> None:
    done = run_python("""
import os, torch, torch_npu, npu_fallback_exporter as nfe
nfe.install("observe")
with nfe.forbid_fallback():
    child = os.fork()
    if child == 0:
        try:
            torch.lgamma(torch.ones(2).npu())
        except RuntimeError as error:
            print(str(error).split(" on ")[0], nfe.get_fallback_stats().blocked, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
""")
    assert done.stdout.strip() == "npu-fallback-exporter refuses aten::lgamma.out 1"


def test_strict_mode_refuses_where_nothing_can_be_counted(tmp_path: object) -> None:
    done = run_python(
        """
import os, shutil, sys, torch, torch_npu, npu_fallback_exporter as nfe
nfe.install("strict")
shutil.rmtree(os.environ["NPU_FALLBACK_DIR"])
open(os.environ["NPU_FALLBACK_DIR"], "w").close()
child = os.fork()
if child == 0:
    try:
        torch.lgamma(torch.ones(2).npu())
    except RuntimeError as error:
        print(str(error).split(" on ")[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
""",
        {"NPU_FALLBACK_DIR": str(tmp_path)},
    )
    assert done.stdout.strip() == "npu-fallback-exporter refuses aten::lgamma.out"
    assert "this process counts nothing" in done.own_lines[0]
