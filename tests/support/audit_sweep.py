"""PyTorch's own samples of every operator, under the audit and with the armed hook.

``python -m tests.support.audit_sweep device|audit none|grad`` prints one line of JSON per call:
what falls back (calls and bytes each way), or the error. Each mode needs a process of its own:
one has torch_npu, the other its stand-in.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

_SAMPLES = 4  # of one operator

Count = Callable[[Any, Any], dict[str, list[int]]]


def main(where: str, gradients: str) -> None:
    """Run all samples at one of the two places."""
    warnings.filterwarnings("ignore")
    count = _on_the_device() if where == "device" else _audited()
    from torch.testing._internal.common_methods_invocations import op_db

    with_gradients = gradients == "grad"
    for number, op in enumerate(op_db):
        if op.name.startswith(("jiterator", "torch.ops.aten._")) or not op.dtypes:
            continue  # for CUDA alone
        for place, sample in enumerate(_samples(op, with_gradients)):
            name = f"{number} {op.name} {op.variant_test_name} {place}"
            try:
                answer: dict[str, Any] = {"counts": count(sample, _call(op, with_gradients))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
            print(json.dumps({"name": name, **answer}), flush=True)


def _samples(op: Any, with_gradients: bool) -> Iterator[Any]:
    import numpy as np
    import torch

    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    dtype = torch.float32 if torch.float32 in op.dtypes else min(op.dtypes, key=str)
    wanted = with_gradients and op.supports_autograd and dtype.is_floating_point
    samples = op.sample_inputs("cpu", dtype, requires_grad=wanted)
    for _ in range(_SAMPLES):
        sample = next(samples, None)
        if sample is None:
            return
        yield sample


def _call(op: Any, with_gradients: bool) -> Callable[..., None]:
    import torch

    def call(first: Any, args: Any, kwargs: Any) -> None:
        torch.manual_seed(1)
        with torch.set_grad_enabled(with_gradients):
            result = op.op(first, *args, **kwargs)
            wanted = [one for one in _flat(result) if one.requires_grad]
            if wanted:
                torch.autograd.backward(wanted, [torch.ones_like(one) for one in wanted])

    return call


def _on_the_device() -> Count:
    os.environ["NPU_FALLBACK_DIR"] = tempfile.mkdtemp()
    import torch
    import torch_npu  # noqa: F401 - registers the device

    import npu_fallback_exporter as nfe
    from npu_fallback_exporter.instrument.build import build

    build()
    assert nfe.install("observe")

    def counts() -> dict[str, list[int]]:
        torch.npu.synchronize()
        return {
            one.op: [one.events, one.bytes_d2h, one.bytes_h2d]
            for one in nfe.get_fallback_stats().ops
            if one.kind == "dispatcher"
        }

    def count(sample: Any, call: Callable[..., None]) -> dict[str, list[int]]:
        moved = _moved(sample)
        before = counts()
        call(*moved)
        rises = {
            op: [now - then for now, then in zip(n, before.get(op, [0, 0, 0]), strict=True)]
            for op, n in counts().items()
        }
        return {op: rise for op, rise in rises.items() if rise[0]}

    return count


def _audited() -> Count:
    from npu_fallback_exporter.audit.stand_in import prepare_environment

    prepare_environment()
    from npu_fallback_exporter.audit.routes import Way
    from npu_fallback_exporter.audit.session import Session
    from npu_fallback_exporter.routing.table import load

    session = Session(load("2.13.0"))
    numbers = iter(range(1_000_000))

    def count(sample: Any, call: Callable[..., None]) -> dict[str, list[int]]:
        phase = str(next(numbers))
        with session.running():
            moved = _moved(sample)
            with session.recording.during(phase):
                call(*moved)
        found = {}
        for op, seen in session.recording.findings.items():
            calls = seen.by_phase.pop(phase, None)
            if calls is not None and seen.decision.way is Way.FALLBACK:
                found[op] = [calls.count, calls.bytes_to_host, calls.bytes_to_device]
        return found

    return count


def _moved(sample: Any) -> tuple[Any, Any, Any]:
    import torch

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to("npu").requires_grad_(value.requires_grad)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(move(item) for item in value)
        if isinstance(value, dict):
            return {key: move(item) for key, item in value.items()}
        return value

    return move(sample.input), move(sample.args), move(sample.kwargs)


def _flat(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in _flat(item)]
    return []


if __name__ == "__main__":
    main(*sys.argv[1:])
