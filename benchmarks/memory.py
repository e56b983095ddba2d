"""What counting takes of the server's memory: a million events of 300 operators in 50,625 shapes.

Run on the simulated device::

    eval "$(python -m tests.cann_sim env)"
    python -m benchmarks.memory
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile

import psutil

from benchmarks.paired import machine

OPERATORS = 300
SIDE = 15  # shapes of four dimensions from 1 to this


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    args = parser.parse_args()
    os.environ["NPU_FALLBACK_DIR"] = tempfile.mkdtemp(dir="/dev/shm")
    os.environ["TORCH_NPU_WARNING_DISABLE"] = "1"

    import torch
    import torch_npu  # noqa: F401 - registers the device

    import npu_fallback_exporter as nfe

    library = torch.library.Library("memory", "DEF")
    for number in range(OPERATORS):
        library.define(f"op{number}(Tensor x) -> Tensor")
        library.impl(f"op{number}", torch.clone, "CPU")
    operators = [getattr(torch.ops.memory, f"op{number}") for number in range(OPERATORS)]
    shapes = list(itertools.product(range(1, SIDE + 1), repeat=4))
    flat = torch.ones(SIDE**4, dtype=torch.int8, device="npu")
    calls = zip(itertools.cycle(operators), itertools.cycle(shapes), strict=False)

    def run(events: int) -> None:
        for operator, shape in itertools.islice(calls, events):
            size = shape[0] * shape[1] * shape[2] * shape[3]
            operator(flat[:size].view(shape))

    process = psutil.Process()
    run(2 * len(shapes))  # what torch itself keeps, it keeps by now
    before = process.memory_info().rss
    nfe.install("warn")
    run(args.events)
    counted = nfe.get_fallback_stats().total
    after = process.memory_info().rss
    print(f"torch {torch.__version__}, {machine()}")
    print(f"{counted} events of {OPERATORS} operators in {len(shapes)} shapes:", end=" ")
    print(f"{(after - before) / 2**20:+.2f} MiB resident, the page included")


if __name__ == "__main__":
    main()
