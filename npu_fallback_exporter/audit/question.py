"""One question to the audit, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import AuditError, unknown
from .input_spec import DTYPES, parse_inputs
from .stand_in import prepare_environment

if TYPE_CHECKING:
    from ..routing.table import RoutingTable
    from .findings import Audit


@dataclass(frozen=True)
class Question:
    """What to audit; one of `target` and `config` is given.

    Attributes:
        target: ``module:factory`` or the path of a program.
        config: folder of a transformers configuration.
        inputs: as in ``--input``.
        arguments: of the program.
        steps: decoding steps.
        sample: whether tokens are drawn.
        dtype: short name of the weights' type; None: the configuration's.
    """

    target: str | None
    config: Path | None = None
    inputs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    steps: int = 0
    sample: bool = False
    dtype: str | None = None

    @property
    def is_script(self) -> bool:
        """Whether the target is a program."""
        return self.target is not None and ":" not in self.target


def answer(question: Question, table: RoutingTable) -> Audit:
    """Run the model or program on fake tensors and judge its operators by the table.

    It changes this process for good: PyTorch is set up with a stand-in for torch_npu.

    Raises:
        AuditError: it cannot be run, or is not there.
    """
    specs = parse_inputs(list(question.inputs))
    _check(question)
    prepare_environment()
    try:
        import torch
    except ImportError as error:
        raise AuditError(f"PyTorch cannot be imported ({error})", "install torch") from error
    from .session import Session
    from .summary import summarise, with_remedies

    session = Session(table)
    if question.config is not None:
        from . import transformers_model

        transformers_model.run(
            session,
            question.config,
            specs,
            steps=question.steps,
            sample=question.sample,
            dtype=question.dtype,
        )
    elif question.is_script:
        from . import script

        script.run(session, Path(question.target or ""), question.arguments)
    else:
        from . import factory

        factory.run(session, question.target or "", specs)
    name = str(question.config or question.target)
    return with_remedies(summarise(session.recording, name, table.version, torch.__version__))


def _check(question: Question) -> None:
    """Find what is misspelt before PyTorch is imported, which takes seconds."""
    from . import paths

    if question.dtype is not None and question.dtype not in DTYPES:
        raise unknown("data type", question.dtype, DTYPES, f"choose one of {', '.join(DTYPES)}")
    if question.config is not None:
        paths.check_config(question.config)
    elif question.is_script:
        paths.check_script(Path(question.target or ""))
        if question.inputs:
            raise AuditError("a script makes its own inputs", "leave --input out")
