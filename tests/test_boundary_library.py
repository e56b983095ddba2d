"""The boundary library by itself: no PyTorch, and a runtime in which nothing is copied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support import boundary

#: Calls of the runtime through look-ups on its handle, as torch_npu's.
RUNTIME = (
    boundary.ATTACHED
    + """
runtime = ctypes.CDLL("libascendcl.so")
H2D, D2H, D2D, BY_ADDRESS = 1, 2, 3, 4

def copy(size, kind):
    return runtime.aclrtMemcpy(None, c_size_t(size), None, c_size_t(size), kind)

class Attribute(ctypes.Structure):
    _fields_ = [("dst_id", c_uint32), ("dst", c_uint32), ("src_id", c_uint32), ("src", c_uint32),
                ("reserved", ctypes.c_uint8 * 16)]

def batch(sizes, places):
    count, groups = len(sizes), sorted(places)
    pointers, lengths = (c_void_p * count)(), (c_size_t * count)(*sizes)
    attributes = (Attribute * len(groups))(*(
        Attribute(dst=places[at][1], src=places[at][0]) for at in groups))
    return runtime.aclrtMemcpyBatch(
        pointers, lengths, pointers, lengths, c_size_t(count), attributes,
        (c_size_t * len(groups))(*groups), c_size_t(len(groups)), byref(c_size_t(0)))
"""
)


def in_child(code: str, *, runtime: bool = True, preload: bool = True) -> Any:
    """Run ``code`` without any of PyTorch, and return the JSON it printed last."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    if runtime:
        env["LD_LIBRARY_PATH"] = str(boundary.fake_runtime())
    if preload:
        env |= {"LD_PRELOAD": str(boundary.library())}
    done = subprocess.run(
        [sys.executable, "-I", "-c", "import json\n" + code],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_it_compiles_without_a_warning() -> None:
    assert boundary.strict_library().exists()


def test_it_needs_the_c_library_only() -> None:
    done = subprocess.run(
        ["readelf", "-d", boundary.library()], capture_output=True, text=True, check=True
    )
    needed = [
        line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "NEEDED" in line
    ]
    assert set(needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "for i in 1 2 3; do (exit $i); echo $?; done; echo $BASH_VERSION"],
        ["git", "--version"],
        ["ls", "-l", "/proc/self/exe"],
        [sys.executable, "-I", "-c", "import ssl, ctypes; print(ctypes.CDLL(None).abs(-3))"],
        ["sh", "-c", "exit 7"],
    ],
)
def test_a_process_without_cann_does_not_notice(command: list[str]) -> None:
    def outcome(**variables: str) -> tuple[int, bytes, bytes]:
        env = {**os.environ, **variables}
        done = subprocess.run(command, capture_output=True, check=False, env=env)
        return done.returncode, done.stdout, done.stderr

    assert outcome(LD_PRELOAD=str(boundary.library())) == outcome()


LOOK_UPS = """
import ctypes
libc = ctypes.CDLL(None)
libc.dlsym.restype = libc.dlerror.restype = ctypes.c_void_p
libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
libc.dlerror.restype = ctypes.c_char_p
names = [b"aclrtMemcpy", b"aclrtMemcpyBatchAsync", b"aclrtMemcpySideways", b"no_such_name"]
found = [libc.dlsym(None, name) for name in names]
errors = (libc.dlsym(None, names[0]), libc.dlerror())[1].decode()
print(json.dumps([found, "undefined symbol: aclrtMemcpy" in errors, libc.dlerror() is None]))
"""


def test_without_a_runtime_its_functions_are_not_found() -> None:
    for preload in (False, True):
        assert in_child(LOOK_UPS, runtime=False, preload=preload) == [[None] * 4, True, True]


def test_a_look_up_sees_its_true_caller() -> None:
    code = f"""
import ctypes
lib = ctypes.CDLL({str(boundary.caller())!r})
for name in ("look_up_own", "look_up_next_own", "look_up_next_malloc"):
    getattr(lib, name).restype = ctypes.c_void_p
own = ctypes.cast(lib.own_name, ctypes.c_void_p).value
print(json.dumps([lib.look_up_own() == own, lib.look_up_next_own(),
                  lib.look_up_next_malloc() is None]))
"""
    bare = in_child(code, preload=False)
    assert bare[:2] == [True, None]
    assert in_child(code) == bare


def test_copies_are_counted_by_direction_when_they_succeed() -> None:
    code = """
before = copy(10, H2D), copy(5, D2H), copy(0, D2H)
counters.attach()
after = copy(100, H2D), copy(7, D2H), copy(9, D2D), copy(9, 0), copy(1, 5), copy(-1, H2D)
print(json.dumps([before, after, counters.all]))
"""
    assert in_child(RUNTIME + code) == [
        [0, 0, 0],
        [0, 0, 0, 0, 0, 107000],
        [12, 111, 3, 3],
    ]


def test_a_form_made_of_other_calls_is_one_copy() -> None:
    code = """
counters.attach()
runtime.aclrtMemcpy2d(None, c_size_t(8), None, c_size_t(8), c_size_t(6), c_size_t(4), H2D)
print(json.dumps(counters.all))
"""
    assert in_child(RUNTIME + code) == [0, 24, 0, 1]


def test_each_item_of_a_batch_is_one_copy() -> None:
    code = """
counters.attach()
HOST, DEVICE, UNREGISTERED, NUMA = 0, 1, 2, 4
batch([1000, 1, 2, 4, 8, 16], {0: (HOST, DEVICE), 2: (DEVICE, UNREGISTERED), 3: (NUMA, DEVICE),
                               4: (DEVICE, DEVICE), 5: (HOST, HOST)})
print(json.dumps([counters.all, described().count("gap")]))
"""
    assert in_child(RUNTIME + code) == [[2, 1005, 1, 3], 0]


BOUND = f"""
caller = ctypes.CDLL({str(boundary.caller())!r})
"""


@pytest.mark.parametrize(
    ("what", "coverage"),
    [
        ("copy(8, H2D)", "full"),
        ("copy(8, BY_ADDRESS)", "partial"),
        ("copy(8, 99)", "partial"),
        ("runtime.aclrtMemcpyAsyncWithDesc(None, D2D, None)", "full"),
        ("runtime.aclrtMemcpyAsyncWithDesc(None, H2D, None)", "partial"),
        ("batch([5] * 9, {0: (0, 1)})", "partial"),
        ("batch([0] * 9, {0: (0, 1)})", "full"),
        ("batch([99] * 9, {0: (0, 1)})", "full"),
        ("batch([1000], {0: (3, 1)})", "partial"),
        ("hasattr(runtime, 'aclrtMemcpySideways')", "partial"),
        ("hasattr(runtime, 'aclrtMemcpyUpwards')", "full"),
        ("hasattr(runtime, 'aclrtMemcpyBatchAsync')", "full"),
    ],
)
def test_coverage_sinks_when_something_cannot_be_told(what: str, coverage: str) -> None:
    for code in (f"counters.attach(); {what}", f"{what}; counters.attach()"):
        show = "\nprint(json.dumps(counters.coverage))"
        assert in_child(RUNTIME + BOUND + code + show) == coverage


def test_what_the_runtime_lacks_is_not_found_anywhere() -> None:
    code = """
print(json.dumps([hasattr(where, name) for where in (runtime, boundary)
                  for name in ("aclrtMemcpy", "aclrtMemcpyBatch", "aclrtMemcpyBatchAsync")]))
"""
    assert in_child(RUNTIME + code) == [True, True, False] * 2


def test_without_a_caller_there_is_no_coverage() -> None:
    code = "counters.attach(); copy(8, H2D); print(json.dumps(counters.coverage))"
    assert in_child(RUNTIME + code) == "none"


def test_loaded_after_its_callers_it_sees_no_import() -> None:
    load = f"import ctypes; ctypes.CDLL({str(boundary.library())!r}, mode=ctypes.RTLD_GLOBAL)\n"
    late = f"import ctypes; ctypes.CDLL({str(boundary.caller())!r})\n" + load
    code = BOUND + "counters.attach(); caller.bound_copy(c_size_t(8), H2D)\n"
    show = "print(json.dumps([counters.coverage, counters.all]))"
    assert in_child(late + RUNTIME + code + show, preload=False) == ["none", [0, 0, 0, 0]]
    assert in_child(load + RUNTIME + code + show, preload=False) == ["partial", [0, 8, 0, 1]]
    assert in_child(RUNTIME + code + show) == ["full", [0, 8, 0, 1]]


def test_another_version_and_a_second_page_are_refused() -> None:
    code = """
refused = counters.attach(version=2), copy(8, H2D), counters.all
print(json.dumps([refused, counters.attach(), Counters().attach(), counters.all]))
"""
    assert in_child(RUNTIME + code) == [[-1, 0, [0, 0, 0, 0]], 0, -1, [0, 8, 0, 1]]


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_that_copy_while_the_page_comes_race_in_nothing(sanitizer: str) -> None:
    done = subprocess.run(
        [boundary.race_driver(sanitizer)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "80000 80000\n", "")


def test_no_count_is_lost_while_the_page_is_attached() -> None:
    code = """
import threading
def work():
    for _ in range(20000):
        copy(3, D2H)
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
counters.attach()
for thread in threads: thread.join()
print(json.dumps(counters.all))
"""
    assert in_child(RUNTIME + code) == [360000, 0, 120000, 0]


def test_a_forked_child_starts_at_zero_and_asks_for_its_page() -> None:
    code = """
import os
copy(10, H2D)
own = Counters()
woken = []
@ctypes.CFUNCTYPE(None)
def wake():
    woken.append(own.attach(address))
address = ctypes.cast(wake, c_void_p)
counters.attach(address)
copy(10, H2D)
read, write = os.pipe()
if os.fork() == 0:
    quiet = list(woken)
    copy(3, D2H); copy(4, D2H)
    os.write(write, json.dumps([quiet, woken, own.all, counters.all]).encode())
    os._exit(0)
os.wait()
copy(10, H2D)
print(json.dumps([json.loads(os.read(read, 1000)), counters.all, woken]))
"""
    child, parent, woken = in_child(RUNTIME + code)
    assert child == [[], [0], [7, 0, 2, 0], [0, 20, 0, 2]]
    assert (parent, woken) == ([0, 30, 0, 3], [])
