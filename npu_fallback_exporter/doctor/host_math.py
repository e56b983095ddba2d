"""How fast this host computes what falls back: threads and math library of PyTorch."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from .finding import Finding, ok, warning
from .machine import Machine
from .torch_facts import TorchFacts

_ONE_THREAD = "every fallback computes on one thread and takes longer"


def check(machine: Machine, facts: TorchFacts) -> tuple[Finding, ...]:
    """Judge threads and libraries."""
    cpus = len(os.sched_getaffinity(0))
    return (_threads(machine.environ, facts, cpus), *_library(facts))


def _threads(environ: Mapping[str, str], facts: TorchFacts, cpus: int) -> Finding:
    asked = environ.get("OMP_NUM_THREADS")
    said = f"OMP_NUM_THREADS={asked}" if asked else "OMP_NUM_THREADS is not set"
    told = facts.torch.get("threads")
    if told is None and asked != "1":
        return ok("intra-op threads", f"{said}; {cpus} CPUs")
    threads = 1 if told is None else int(told)
    text = f"{threads} on {cpus} CPUs, {said}"
    if threads == 1 and cpus > 1:
        return warning(
            "intra-op threads",
            f"{text}: {_ONE_THREAD}",
            "set OMP_NUM_THREADS to CPUs per server process; torchrun sets it to 1 where it is "
            "not set",
        )
    if threads > cpus:
        return warning(
            "intra-op threads",
            f"{text}: more threads than CPUs wait for each other",
            f"set OMP_NUM_THREADS={cpus}, or less where several processes share the CPUs",
        )
    return ok("intra-op threads", text)


def _library(facts: TorchFacts) -> tuple[Finding, ...]:
    if not facts.torch:
        return ()
    build, parallel = str(facts.torch.get("build", "")), str(facts.torch.get("parallel", ""))
    names = [
        name
        for name, pattern in (
            ("MKL", r"USE_MKL=(?:ON|1)|Math Kernel Library Version"),
            ("OpenBLAS", r"BLAS_INFO=open|OpenBLAS"),
            ("Arm Compute Library", r"USE_MKLDNN_ACL=(?:ON|1)"),
            ("oneDNN", r"USE_MKLDNN=(?:ON|1)|oneDNN|MKL-DNN v"),
        )
        if re.search(pattern, build)
    ]
    capability = re.search(r"CPU capability usage: (\S+)", build)
    backend = "OpenMP" if re.search(r"OpenMP", parallel) else ""
    parts = [", ".join(names), backend, capability[1] if capability else ""]
    text = "; ".join(filter(None, parts))
    if any(name in names for name in ("MKL", "OpenBLAS", "Arm Compute Library")):
        return (ok("math library", text),)
    return (
        warning(
            "math library",
            f"{text or 'none named'}: no BLAS that is known to be fast",
            "matrix products that fall back are slow: use a PyTorch built with MKL or OpenBLAS",
        ),
    )
