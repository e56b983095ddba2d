"""The child that imports torch and torch_npu.

``python -m npu_fallback_exporter.doctor.torch_probe`` prints one line of JSON after each import, so
that what is known survives a crash in the next one. It uses no device: importing torch_npu
initialises none.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys


def main() -> None:
    """Print what is known about torch, then about torch_npu."""
    # Libraries print to stdout while they are loaded: that must not get between the lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(name: str, facts: dict[str, object]) -> None:
        print(json.dumps({name: facts}), file=answers, flush=True)

    tell("torch", _about_torch())
    if importlib.util.find_spec("torch_npu") is not None:
        tell("torch_npu", _about_torch_npu())


def _about_torch() -> dict[str, object]:
    import torch

    return {
        "version": str(torch.__version__),
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "threads": torch.get_num_threads(),
        "parallel": torch.__config__.parallel_info(),
        "build": torch.__config__.show(),
    }


def _about_torch_npu() -> dict[str, object]:
    import torch_npu

    try:
        cann = str(torch_npu._C._get_cann_version("CANN"))
    except Exception:  # an older torch_npu, or no CANN installation
        cann = ""
    return {"version": str(torch_npu.__version__), "cann": cann}


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Teardown of a half-loaded CANN may crash; everything is said.
    os._exit(0)
