"""Counts, with the armed hook, what models of the transformers library cause on the device.

``python -m tests.support.transformers_on_npu FOLDER:STEPS...`` prints one line of JSON per
folder with a config.json: by ``forward`` and ``generate``, events and bytes each way per operator
and kind.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def _counts() -> dict[str, list[int]]:
    import npu_fallback_exporter as nfe

    return {
        f"{one.op} {one.kind}": [one.events, one.bytes_d2h, one.bytes_h2d]
        for one in nfe.get_fallback_stats().ops
    }


def _rise(before: dict[str, list[int]]) -> dict[str, list[int]]:
    import torch

    torch.npu.synchronize()
    rises = {
        key: [now - then for now, then in zip(numbers, before.get(key, [0, 0, 0]), strict=True)]
        for key, numbers in _counts().items()
    }
    return {key: rise for key, rise in rises.items() if rise[0]}


def count(folder: Path, steps: int) -> dict[str, Any]:
    """Run one model forward and, with steps, generate."""
    import torch

    from npu_fallback_exporter.audit import transformers_model as library
    from npu_fallback_exporter.audit.samples import sample
    from npu_fallback_exporter.routing.table import load
    from tests.support.dispatched import dispatched

    torch.manual_seed(0)
    config, kind = library._configuration(library._library(), folder)
    model: Any = library._build(kind, config, None).npu().eval()
    inputs = {str(spec.name): sample(spec).npu() for spec in library._usual_inputs(model, config)}
    torch.npu.synchronize()
    before = _counts()
    with torch.no_grad():
        model(**inputs)
    answer: dict[str, Any] = {"forward": _rise(before)}
    with torch.no_grad():
        answer["operators"] = dispatched(lambda: model(**inputs), load("2.13.0"))
    if steps:
        inputs.pop("decoder_input_ids", None)
        calls = []
        model.get_decoder().register_forward_pre_hook(lambda *_: calls.append(1))
        before = _counts()
        model.generate(**inputs, max_new_tokens=steps + 1, do_sample=False)
        answer["generate"] = _rise(before)
        answer["calls"] = len(calls)
    return answer


def main(arguments: list[str]) -> None:
    """Count for each folder and print."""
    os.environ["NPU_FALLBACK_DIR"] = tempfile.mkdtemp()
    import torch_npu  # noqa: F401 - registers the device

    import npu_fallback_exporter as nfe
    from npu_fallback_exporter.instrument.build import build

    build()
    assert nfe.install("observe")
    for argument in arguments:
        folder, _, steps = argument.rpartition(":")
        try:
            answer = count(Path(folder), int(steps))
        except Exception as error:  # one that the simulation cannot run must not hide the others
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"}
        print(json.dumps({"folder": folder, **answer}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
