"""What the hook costs a server: per event, per other operator, and once when arming.

Run on the simulated device::

    eval "$(python -m tests.cann_sim env)"
    python -m benchmarks.hook
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.paired import HEADER, compare, machine

_ARM_ONCE = """
import time, torch, torch_npu
from npu_fallback_exporter.instrument.arming import install
begin = time.process_time()
install("observe")
print(time.process_time() - begin)
"""

_IMPORT = """
import time
begin = time.process_time()
import torch
print(time.process_time() - begin)
"""


def in_child(code: str, hook: str) -> float:
    """Run ``code`` in a fresh process and return the seconds it printed last."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NPU_FALLBACK_HOOK": hook},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


def empty_observer() -> ctypes.CDLL:
    """Compile and load an observer of operators that does nothing: the floor of TRACK=all."""
    from torch.utils import cpp_extension

    library = Path(tempfile.mkdtemp()) / "empty_observer.so"
    source = Path(__file__).with_name("empty_observer.cpp")
    folders = [f"-I{folder}" for folder in cpp_extension.include_paths()]
    subprocess.run(
        ["g++", "-std=c++20", "-O2", "-fPIC", "-shared", *folders, source, "-o", library],
        check=True,
    )
    return ctypes.CDLL(str(library))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--children", type=int, default=9, help="fresh processes per figure")
    args = parser.parse_args()
    os.environ["NPU_FALLBACK_DIR"] = tempfile.mkdtemp(dir="/dev/shm")
    os.environ["TORCH_NPU_WARNING_DISABLE"] = "1"

    import torch
    import torch_npu

    import npu_fallback_exporter as nfe
    from npu_fallback_exporter.instrument.build import build

    build()

    def arm() -> None:
        if not nfe.install("observe"):
            raise SystemExit("not armed: see the line above")

    x = torch.ones(2, 3).npu()
    big = torch.ones(256, 256).npu()
    on_host = torch.ones(2, 3)
    one = torch.ones(1).npu()
    calls = {
        "fallback: `fmax` of two f32[2,3]": lambda: torch.fmax(x, x),
        "fallback: `lgamma` of f32[256,256]": lambda: torch.lgamma(big),
        "NPU kernel: `add` of two f32[2,3]": lambda: torch.add(x, x),
        "CPU view: `transpose`": lambda: on_host.transpose(0, 1),
        "copy to the host: `copy_` of f32[2,3]": lambda: on_host.copy_(x),
        "copy to the NPU: `copy_` of f32[2,3]": lambda: x.copy_(on_host),
        "wait for a value: `.item()`": lambda: one.item(),
        "NPU kernel of the product's table: `sinc` of f32[2,3]": lambda: torch.sinc(x),
    }
    print(f"torch {torch.__version__}, torch_npu {torch_npu.__version__}, {machine()}")
    print(f"medians of {args.rounds} paired rounds")
    for track in ("fallbacks", "all"):
        os.environ["NPU_FALLBACK_TRACK"] = track
        print(f"\nNPU_FALLBACK_TRACK={track}\n\n{HEADER}")
        for name, call in calls.items():
            count = 100 if "256" in name else 2000
            pair = compare(name, call, nfe.uninstall, arm, rounds=args.rounds, calls=count)
            print(pair.row(), flush=True)
        nfe.uninstall()
    observer = empty_observer()
    name = "CPU view: `transpose`"
    floor = compare(name, calls[name], observer.stop, observer.observe, rounds=args.rounds)
    observer.stop()
    print(f"\nonly PyTorch's RecordFunction with an empty observer: the floor of all\n\n{HEADER}")
    print(floor.row())
    del os.environ["NPU_FALLBACK_TRACK"]

    arming = [in_child(_ARM_ONCE, "0") for _ in range(args.children)]
    print(f"\narming in a fresh process: {statistics.median(arming) * 1e3:.1f} ms of CPU", end="")
    print(f" (worst of {args.children}: {max(arming) * 1e3:.1f} ms)")
    bare = [in_child(_IMPORT, "0") for _ in range(args.children)]
    armed = [in_child(_IMPORT, "1") for _ in range(args.children)]
    added = statistics.median(b - a for a, b in zip(bare, armed, strict=True))
    print(f"`import torch`: {statistics.median(bare):.3f} s of CPU, armed {added * 1e3:+.0f} ms")


if __name__ == "__main__":
    main()
