"""One audited run: fake tensors, the collector and the module hooks, and the phases in between."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .call_sites import Lines, ModulePath
from .collector import Collector, fake_mode
from .detours import as_in_eager
from .errors import AuditError
from .fake_behaviour import as_real
from .recording import Recording
from .routes import Routes, kernels_of_composites
from .samples import sample
from .stand_in import NPU, register_device, register_kernels
from .values import Values

if TYPE_CHECKING:
    from ..routing.table import RoutingTable
    from .input_spec import InputSpec


class Session:
    """Runs models and programs on the stand-in device.

    Args:
        table: the routing table that decides.
    """

    def __init__(self, table: RoutingTable) -> None:
        register_device()
        register_kernels(kernels_of_composites(table))
        self._modules = ModulePath()
        self.values = Values()
        self.recording = Recording(Lines((str(Path(torch.__file__).parent),)), self._modules)
        self._collector = Collector(Routes(table), self.values, self.recording)
        self._fake_mode = fake_mode()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record what runs inside of the block; random numbers are the same in every run."""
        torch.manual_seed(0)
        with (
            self._fake_mode,
            self._collector,
            self._modules.watching(),
            as_real(self._collector.guesses),
            as_in_eager(),
        ):
            yield

    def assume_token(self, token: int) -> None:
        """Let argmax and multinomial give this where the values before them are unknown."""
        self._collector.guesses.token = token

    def inputs(self, specs: Sequence[InputSpec]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Make the inputs on the NPU: the positional ones, and those with a name."""
        positional: list[torch.Tensor] = []
        named: dict[str, Any] = {}
        for spec in specs:
            tensor = sample(spec).to(NPU)
            if spec.name is None:
                positional.append(tensor)
            else:
                named[spec.name] = tensor
        return positional, named


def to_npu(model: torch.nn.Module) -> torch.nn.Module:
    """Move a model to the NPU, as a server does before it serves."""
    try:
        return model.to(NPU).eval()
    except NotImplementedError as error:
        raise AuditError(f"the model cannot be moved to the NPU ({error})", "see above") from error
