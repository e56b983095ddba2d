"""Copies that a program asks for itself, or that come with waiting for a value: never a fallback.

Run as a program, it prints what the page and the ledger say of all of them, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

USER_COPIES: dict[str, Callable[[torch.Tensor], Any]] = {
    "cpu": lambda x: x.cpu(),
    "to with another dtype": lambda x: x.to("cpu", torch.float64),
    "non_blocking": lambda x: x.to("cpu", non_blocking=True),
    "pinned to the device": lambda x: torch.ones(8).pin_memory().to("npu", non_blocking=True),
    "pinned from the device": lambda x: torch.empty(4, 6).pin_memory().copy_(x, non_blocking=True),
    "npu": lambda x: torch.ones(3, 3).npu(),
    "npu with another dtype": lambda x: torch.ones(3).to("npu", torch.half),
    "numpy": lambda x: x.cpu().numpy(),
    "tolist": lambda x: x.tolist(),
    "tensor on the device": lambda x: torch.tensor([1, 2, 3], device="npu"),
    "a strided source": lambda x: x[:, ::2].cpu(),
    "a strided destination": lambda x: x[:, ::2].copy_(torch.ones(4, 3)),
    "a broadcast source": lambda x: x.copy_(torch.ones(6)),
    "a broadcast source on the device": lambda x: torch.empty(4, 6).copy_(x[0]),
    "foreach copy to the device": lambda x: torch._foreach_copy_([x], [torch.ones(4, 6)]),
    "foreach copy to the host": lambda x: torch._foreach_copy_([torch.empty(4, 6)], [x]),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, torch.tensor([1, 2, 1, 1]).npu(), 0),
    "print": str,
}


def main() -> None:
    from tests.support.hooked import arm, measured

    arm()
    for name, call in USER_COPIES.items():
        torch.manual_seed(0)
        x = torch.rand(4, 6).npu()
        with measured() as seen:
            call(x)
        print(json.dumps({"name": name, **asdict(seen)}), flush=True)


if __name__ == "__main__":
    main()
