"""The boundary library in child processes: with a runtime in which nothing is copied, or a server.

The code that children run finds ``boundary``, ``counters`` and ``coverage()`` defined.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

from npu_fallback_exporter.instrument.build import boundary_command, build_boundary
from npu_fallback_exporter.instrument.hook_path import BOUNDARY_SOURCES

#: Without look-ups: the sanitizers' own start with dlsym().
_COUNTING = ("copies", "counters")

_NATIVE = Path(__file__).parent.parent / "native"


@functools.cache
def library() -> Path:
    """Return the compiled boundary library."""
    return build_boundary()


@functools.cache
def strict_library() -> Path:
    """Return the boundary library compiled so that a warning is an error."""
    path = Path(tempfile.mkdtemp(prefix="boundary-")) / "boundary.so"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run([*boundary_command(), *warnings, "-o", str(path)], check=True)
    return path


@functools.cache
def fake_runtime() -> Path:
    """Return the folder of a ``libascendcl.so`` in which nothing is copied."""
    return _compile("fake_ascendcl.c", "libascendcl.so")


@functools.cache
def race_driver(sanitizer: str) -> Path:
    """Return a program that copies from several threads, compiled to watch itself."""
    path = Path(tempfile.mkdtemp(prefix="boundary-")) / "race"
    sources = [_NATIVE / "boundary_race.c", *(BOUNDARY_SOURCES / f"{name}.c" for name in _COUNTING)]
    subprocess.run(
        [
            *("gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wall", "-Werror"),
            *(f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", f"-I{BOUNDARY_SOURCES}"),
            *(*map(str, sources), "-o", str(path)),
        ],
        check=True,
    )
    return path


@functools.cache
def caller() -> Path:
    """Return a library that depends on ``libascendcl.so``, and looks names up itself."""
    return _compile("caller.c", "libcaller.so", f"-L{fake_runtime()}", "-lascendcl") / (
        "libcaller.so"
    )


def _compile(source: str, name: str, *libraries: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="boundary-"))
    flags = ["-std=c11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [
            *("gcc", *flags, f"-Wl,-soname,{name}", "-Wl,-z,now", str(_NATIVE / source)),
            *("-o", str(folder / name), *libraries, "-ldl"),
        ],
        check=True,
    )
    return folder


#: For children that have the library loaded in the global scope.
ATTACHED = """
import ctypes
from ctypes import byref, c_size_t, c_uint32, c_uint64, c_void_p
boundary = ctypes.CDLL(None)

class Target(ctypes.Structure):
    _fields_ = [("version", c_uint32), ("bytes", c_void_p), ("transfers", c_void_p),
                ("coverage", c_void_p), ("wake", c_void_p)]

class Counters:
    def __init__(self):
        self.bytes, self.transfers = (c_uint64 * 2)(), (c_uint64 * 2)()
        self.level = c_uint32(99)

    def attach(self, wake=None, version=1):
        target = Target(version, ctypes.addressof(self.bytes), ctypes.addressof(self.transfers),
                        ctypes.addressof(self.level), wake)
        return boundary.nfe_boundary_attach(byref(target))

    @property
    def coverage(self):
        return ["none", "partial", "full"][self.level.value]

    @property
    def all(self):
        return [*self.bytes, *self.transfers]

counters = Counters()

def described():
    size = boundary.nfe_boundary_describe(None, 0)
    text = ctypes.create_string_buffer(size)
    boundary.nfe_boundary_describe(text, size)
    return text.value.decode()
"""

#: For servers: ``show()`` prints the page's figures, and the ledger's, in the order of the page.
SHOW = """
import json, os
import torch, torch_npu
import npu_fallback_exporter as nfe
from npu_fallback_exporter.instrument.arming import hook
from npu_fallback_exporter.pages.page import read_page
from tests.cann_sim import Ledger

def show(**more):
    torch.npu.synchronize()
    page = read_page(str(hook().page_path)).page
    seen = Ledger().snapshot()
    print(json.dumps({
        "boundary": page.boundary,
        "driver": [*page.counters.driver_bytes, *page.counters.driver_transfers],
        "ledger": [seen.d2h_bytes, seen.h2d_bytes, seen.d2h_calls, seen.h2d_calls],
        **more,
    }), flush=True)
"""


def preloaded(**variables: str) -> dict[str, str]:
    """Return variables for a child into which the boundary library is preloaded."""
    present = os.environ.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": ":".join(filter(None, [present, str(library())])), **variables}
