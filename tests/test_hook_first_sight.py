"""The first sights of an operator: the line in the log, call sites and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import npu_fallback_exporter as nfe
from npu_fallback_exporter.pages.notes import Notes
from npu_fallback_exporter.pages.page import read_notes
from tests.support.child import Finished, run_python
from tests.support.hooked import armed

pytestmark = pytest.mark.usefixtures("hook_is_built")

#: A program whose lines are known: ``calls.py`` in a folder of its own.
PROGRAM = """\
import os
import sys
import threading

import torch
import torch_npu

import npu_fallback_exporter as nfe

x = torch.ones(2, 3).npu()


def once():
    return torch.lgamma(x)


def other():
    return torch.lgamma(x)


"""


def run(folder: Path, body: str, **variables: str) -> tuple[Finished, Path]:
    """Run PROGRAM and ``body`` with the hook armed, its pages in ``folder``."""
    path = folder / "calls.py"
    path.write_text(PROGRAM + body)
    code = f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    env = {"NPU_FALLBACK_DIR": str(folder), "NPU_FALLBACK_MODE": "warn", **variables}
    done = run_python(code, env)
    assert done.returncode == 0, done.stderr
    return done, path


def notes_in(folder: Path) -> list[Notes]:
    return [read_notes(str(path)) for path in sorted(folder.glob("*.page"))]


def places(notes: Notes, op: str = "aten::lgamma.out") -> list[tuple[int, str]]:
    sites = notes.call_sites.get(op, ())
    return [(site.place.line, site.place.function) for site in sites if site.place is not None]


def line_of(text: str) -> int:
    """Number of the first line of PROGRAM that holds ``text``."""
    return next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def test_the_line_names_operator_kind_sizes_types_and_the_users_line(tmp_path: Path) -> None:
    done, path = run(tmp_path, "once()\n")
    (line,) = done.own_lines
    assert line.startswith(
        "npu-fallback-exporter: aten::lgamma.out ran on the CPU (kind dispatcher"
    )
    assert "48 bytes to the host, 24 back" in line
    assert "of self float32[2, 3], out float32[2, 3], called from" in line
    assert f"called from {path}:{line_of('torch.lgamma')} in once: no NPU kernel" in line


def test_a_kernel_that_computes_on_the_host_is_told_with_its_arguments_too(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "torch.var(x, 1, correction=0.5)\n" * 2)
    (line,) = done.own_lines
    assert "aten::var.correction ran on the CPU (kind explicit_kernel, npu:0, 24 bytes" in line
    assert "of self float32[2, 3], called from" in line
    assert line.endswith(": its NPU kernel computes on the host here; told once per op")
    (notes,) = notes_in(tmp_path)
    (arguments,) = notes.signatures["aten::var.correction"]
    assert {argument.name: argument.value for argument in arguments}["correction"] == 0.5
    assert len(notes.call_sites["aten::var.correction"]) == 2


def test_every_operator_is_told_once(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "for _ in range(3):\n    once(), other(), torch.digamma(x)\n")
    assert len(done.own_lines) == 2


@pytest.mark.parametrize("rank", ["0", "3"])
def test_every_rank_tells(tmp_path: Path, rank: str) -> None:
    done, _ = run(tmp_path, "once()\n", RANK=rank)
    assert len(done.own_lines) == 1


def test_nothing_is_told_in_observe_mode_and_all_the_same_noted(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "once()\n", NPU_FALLBACK_MODE="observe")
    assert done.own_lines == []
    (notes,) = notes_in(tmp_path)
    assert places(notes) == [(line_of("torch.lgamma"), "once")]


def test_up_to_five_distinct_call_sites_are_kept(tmp_path: Path) -> None:
    calls = "".join(f"def f{n}():\n    torch.lgamma(x)\n\n\n" for n in range(7))
    body = calls + "for f in (f0, f0, f1, f2, f3, f4, f5, f6):\n    f()\n"
    run(tmp_path, body)
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes)] == ["f0", "f1", "f2", "f3", "f4"]


def test_after_64_events_of_an_operator_nobody_looks_any_more(tmp_path: Path) -> None:
    run(tmp_path, "for _ in range(64):\n    once()\nother()\n")
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes)] == ["once"]


def test_the_64th_event_is_still_looked_at(tmp_path: Path) -> None:
    run(tmp_path, "for _ in range(63):\n    once()\nother()\n")
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes)] == ["once", "other"]


def test_the_stack_around_the_call_is_kept_innermost_first(tmp_path: Path) -> None:
    run(tmp_path, "def outer():\n    once()\n\n\nouter()\n")
    (notes,) = notes_in(tmp_path)
    (site,) = notes.call_sites["aten::lgamma.out"]
    assert [place.function for place in site.stack][:3] == ["once", "outer", "<module>"]


def test_frames_of_pytorch_are_not_the_users(tmp_path: Path) -> None:
    body = "loss = torch.nn.HuberLoss()\n\n\ndef step():\n    loss(x, x)\n\n\nstep()\n"
    run(tmp_path, body)
    (notes,) = notes_in(tmp_path)
    (site,) = notes.call_sites["aten::huber_loss"]
    assert site.place is not None
    assert site.place.function == "step"
    assert "torch/nn/" in site.stack[0].file


def test_arguments_are_kept_with_sizes_types_and_scalars(tmp_path: Path) -> None:
    run(tmp_path, "torch.nn.functional.huber_loss(x, x.half().float(), delta=0.25)\n")
    (notes,) = notes_in(tmp_path)
    (arguments,) = notes.signatures["aten::huber_loss"]
    assert {argument.name: argument.value for argument in arguments} == {
        "self": {"tensor": [2, 3], "dtype": "float32", "device": "npu"},
        "target": {"tensor": [2, 3], "dtype": "float32", "device": "npu"},
        "reduction": 1,
        "delta": 0.25,
    }


def test_equal_arguments_of_several_call_sites_are_kept_once(tmp_path: Path) -> None:
    run(tmp_path, "once()\nother()\n")
    (notes,) = notes_in(tmp_path)
    assert [site.signature for site in notes.call_sites["aten::lgamma.out"]] == [0, 0]
    assert len(notes.signatures["aten::lgamma.out"]) == 1


def test_call_sites_can_be_switched_off(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "once()\n", NPU_FALLBACK_CALL_SITES="0")
    (notes,) = notes_in(tmp_path)
    assert (notes.call_sites, notes.signatures) == ({}, {})
    (line,) = done.own_lines
    assert "called from" not in line
    assert "float32" not in line


# Threads of all kinds


def test_a_worker_thread_has_its_own_call_site(tmp_path: Path) -> None:
    run(tmp_path, "thread = threading.Thread(target=other)\nthread.start()\nthread.join()\n")
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes)] == ["other"]


def test_a_backward_pass_on_a_thread_of_autograd_has_no_python_line(tmp_path: Path) -> None:
    done, _ = run(tmp_path, "torch.lgamma(x.requires_grad_()).sum().backward()\n")
    (notes,) = notes_in(tmp_path)
    assert [site.place for site in notes.call_sites["aten::digamma.out"]] == [None]
    assert "called from" not in done.own_lines[1]


def test_a_script_function_has_the_line_of_its_caller(tmp_path: Path) -> None:
    body = """\
def twice(t: torch.Tensor) -> torch.Tensor:
    return torch.lgamma(torch.lgamma(t))


def caller():
    scripted(x)


scripted = torch.jit.script(twice)
caller()
"""
    run(tmp_path, body)
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes)] == ["caller"]


def test_an_operator_called_while_the_gil_is_held_has_its_line_too(tmp_path: Path) -> None:
    body = """\
library = torch.library.Library("held", "DEF")
library.define("inner(Tensor x) -> Tensor")
library.impl("inner", lambda t: t + 1, "CPU")


def kernel(t):
    return torch.ops.held.inner(t)


library.define("outer(Tensor x) -> Tensor")
library.impl("outer", kernel, "PrivateUse1")
torch.ops.held.outer(x)
"""
    run(tmp_path, body)
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes, "held::inner")] == ["kernel"]


def test_events_at_the_end_of_the_process_end_well(tmp_path: Path) -> None:
    # One before our own exit handler, one after it, one while the interpreter is finalising.
    body = """\
import atexit


class Late:
    def __del__(self, call=torch.lgamma, x=x):
        call(x)


late = Late()
sys.late = late
atexit.register(once)
atexit._run_exitfuncs()
atexit.register(other)
"""
    done, _ = run(tmp_path, body)
    assert len(done.own_lines) == 1
    (notes,) = notes_in(tmp_path)
    assert [name for _, name in places(notes)] == ["once"]


# Forks


def test_a_forked_child_notes_in_its_own_page(tmp_path: Path) -> None:
    body = """\
from npu_fallback_exporter.instrument.arming import hook
path = str(hook().page_path)
child = os.fork()
if child == 0:
    torch.npu.set_device(0)
    torch.lgamma(torch.ones(3).npu())
    os._exit(0)
os.waitpid(child, 0)
"""
    program = PROGRAM.replace("x = torch.ones(2, 3).npu()", "x = None")
    path = tmp_path / "calls.py"
    path.write_text(program + body)
    code = f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    env = {"NPU_FALLBACK_DIR": str(tmp_path), "NPU_FALLBACK_MODE": "observe"}
    assert run_python(code, env).returncode == 0
    by_count = sorted(notes_in(tmp_path), key=lambda notes: len(notes.call_sites))
    assert len(by_count) == 2
    assert by_count[0].call_sites == {}
    assert len(places(by_count[1])) == 1


# In this process


@pytest.fixture
def _armed() -> Iterator[None]:
    with armed():
        yield


@pytest.mark.usefixtures("_armed")
def test_statistics_tell_where_an_operator_was_called_from() -> None:
    x = torch.ones(2).npu()
    torch.special.bessel_y0(x)
    stats = nfe.get_fallback_stats()
    (op,) = (op for op in stats.ops if op.op == "aten::special_bessel_y0.out")
    (site,) = op.call_sites
    assert site.place is not None
    assert site.place.file == __file__
    function = "test_statistics_tell_where_an_operator_was_called_from"
    assert str(site).endswith(f" in {function}")


# In a process of its own: in this one the looks at these operators may be used up already.
ARGUMENTS = """
four = torch.ones(4).npu()
torch.histogram(four, 2, range=(0.0, 8.0))
torch.nn.functional.multi_margin_loss(four.reshape(1, 4), four[:1].long(), margin=float("inf"))
torch.ops.aten._make_dep_token(dtype=torch.float16, device="npu")
torch.special.erfcx(four.reshape(2, 2).T)
"""


@pytest.fixture(scope="module")
def signatures(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    folder = tmp_path_factory.mktemp("arguments")
    run(folder, ARGUMENTS)
    (notes,) = notes_in(folder)
    return notes


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        pytest.param(
            "aten::histogram.bin_ct",
            {"range": {"list": [0.0, 8.0]}, "weight": None, "density": False, "bins": 2},
            id="list, none and bool",
        ),
        pytest.param(
            "aten::multi_margin_loss", {"p": 1, "margin": {"float": "inf"}}, id="infinity"
        ),
        pytest.param(
            "aten::_make_dep_token",
            {"dtype": {"dtype": "float16"}, "device": {"device": "npu"}},
            id="data type and device",
        ),
        pytest.param(
            "aten::special_erfcx.out",
            {"self": {"tensor": [2, 2], "strides": [1, 2], "dtype": "float32", "device": "npu"}},
            id="strides",
        ),
    ],
)
def test_arguments_of_each_kind_are_kept(
    signatures: Notes, op: str, expected: dict[str, object]
) -> None:
    (arguments,) = signatures.signatures[op]
    kept = {argument.name: argument.value for argument in arguments}
    assert {name: kept[name] for name in expected} == expected
