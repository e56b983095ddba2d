"""A server that works off requests at a steady pace: ``python -m tests.fleet.server PHASE_FILE``.

What a request does stands in the file and may change while it runs. Each phase is a change that a
release might bring.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from pathlib import Path

import torch
import torch_npu  # noqa: F401 - registers the device

REQUESTS_PER_SECOND = 4


class Model:
    """A small network whose every operator has an NPU kernel, and the mistakes that it can make."""

    def __init__(self) -> None:
        self.weights = [torch.randn(128, 128).npu() for _ in range(6)]
        self.boxes = torch.rand(64, 1024).npu()
        self.wide = torch.rand(512, 1024).npu()

    def request(self, phase: str, chance: float) -> None:
        """Answer one request. ``chance`` in [0, 1) decides about what happens now and then."""
        x = torch.randn(16, 128).npu()
        for weight in self.weights:
            x = torch.relu(x @ weight) + x
        x.cpu()  # the answer
        x.sum().item()
        if phase not in ("clean", "broken") and chance < 0.1:
            torch.var(x, 1, correction=0.5)
        if (phase == "new op" and chance < 0.3) or phase == "broken":
            torch.lgamma(self.boxes)
        if (phase == "new op" and chance > 0.95) or phase == "broken":
            torch.hypot(x, x)  # what a strict server refuses
        if phase == "hot fallback":
            torch.fmax(self.wide, self.wide)
            for _ in range(3):
                torch.lgamma(self.wide)
        if phase == "chatty":
            for value in x[:, 0]:
                bool(value > 0)
            self.wide.cpu()
            if chance < 0.05:
                torch.ops.aten.lgamma(torch.complex(x, x))  # has no CPU kernel for this type


def main() -> None:
    """Serve until killed."""
    file = Path(sys.argv[1])
    model = Model()
    dice = random.Random(1)
    due = time.monotonic()
    while True:
        phase = file.read_text(encoding="utf-8")
        with contextlib.suppress(RuntimeError):  # this request failed; the next may not
            model.request(phase, dice.random())
        due += 1 / REQUESTS_PER_SECOND
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
