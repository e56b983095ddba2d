"""What the boundary library costs: per copy, per look-up of a name, per process that carries it.

The runtime is one in which a copy does nothing, so that nothing hides the difference::

    python -m benchmarks.boundary
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.paired import compare, machine
from tests.support import boundary

#: Calls per measurement: microseconds per 1000 calls are nanoseconds per call.
_THOUSAND = 1000
_ROW = "| call | bare, ns | through the library, ns | added, ns (quartiles) | ratio |\n"
_HOST_TO_DEVICE, _DEVICE_TO_DEVICE = 1, 3


def compiled_loop() -> ctypes.CDLL:
    path = Path(tempfile.mkdtemp()) / "loop.so"
    source = Path(__file__).parent / "boundary_loop.c"
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", source, "-o", path], check=True)
    return ctypes.CDLL(str(path))


def address(library: ctypes.CDLL, name: str) -> ctypes.c_void_p:
    return ctypes.cast(library[name], ctypes.c_void_p)


class Attached:
    """Counters such as the hook attaches: the words of a page."""

    def __init__(self, library: ctypes.CDLL) -> None:
        words = (ctypes.c_uint64 * 6)()
        at = ctypes.addressof(words)
        target = (ctypes.c_uint64 * 5)(1, at, at + 16, at + 32, 0)
        self.words = words
        if library.nfe_boundary_attach(target) != 0:
            raise SystemExit("the library is of another version than this benchmark")


def per_copy(rounds: int) -> None:
    runtime = ctypes.CDLL(str(boundary.fake_runtime() / "libascendcl.so"))
    library = ctypes.CDLL(str(boundary.library()))
    bare, through = address(runtime, "aclrtMemcpy"), address(library, "aclrtMemcpy")
    attached = Attached(library)
    loop = compiled_loop()
    function = bare

    def enter(other: ctypes.c_void_p) -> Callable[[], None]:
        def choose() -> None:
            nonlocal function
            function = other

        return choose

    def copies(kind: int, thousands: int = 1) -> Callable[[], object]:
        size = ctypes.c_size_t(_THOUSAND * thousands)
        return lambda: loop.copy_often(function, size, kind)

    def report(name: str, call: Callable[[], object], calls: int = 1000) -> None:
        pair = compare(name, call, enter(bare), enter(through), rounds=rounds, calls=calls)
        print(pair.row(), flush=True)

    report("copy, host to device", copies(_HOST_TO_DEVICE))
    report("copy within the device, not counted", copies(_DEVICE_TO_DEVICE))
    print(f"counted: {attached.words[3]} copies", flush=True)

    bare = ctypes.cast(ctypes.CDLL(None).dlsym, ctypes.c_void_p)
    through = address(library, "dlsym")
    size = ctypes.c_size_t(_THOUSAND)
    report("look-up of `malloc`", lambda: loop.look_up_often(function, size, None), 100)


def per_process(rounds: int) -> None:
    def seconds(preload: str) -> float:
        begin = time.perf_counter()
        subprocess.run(["/bin/true"], env={**os.environ, "LD_PRELOAD": preload}, check=True)
        return time.perf_counter() - begin

    library = str(boundary.library())
    added = statistics.median(-seconds("") + seconds(library) for _ in range(rounds))
    print(f"\nstarting and ending `/bin/true`: {added * 1e6:+.0f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    args = parser.parse_args()
    print(machine())
    print(f"medians of {args.rounds} paired rounds\n\n{_ROW}|---|---|---|---|---|")
    per_copy(args.rounds)
    per_process(args.rounds * 5)


if __name__ == "__main__":
    main()
