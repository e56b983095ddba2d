"""What to do about an operator that runs on the host: a table that people keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import yaml


class Kind(Enum):
    """What a remedy changes."""

    EQUIVALENT = "equivalent"  # call another operator, with the same result
    FLAG = "flag"  # set a switch
    DTYPE = "dtype"  # use another data type
    VERSION = "version"  # upgrade torch_npu or CANN
    FUSION = "fusion"  # use a fused operator of torch_npu
    CUSTOM_OP = "custom_op"  # install or write a kernel for the NPU
    MODEL = "model"  # change or move a step of the model


@dataclass(frozen=True)
class Remedy:
    """What helps against host computation of some operators.

    Attributes:
        ops: glob over full overload names.
        kind: what it changes.
        en: what to do, in English: short imperative sentences.
        zh: the same in Chinese.
        uses: operators named as a replacement, by full overload name.
    """

    ops: str
    kind: Kind
    en: str
    zh: str
    uses: tuple[str, ...] = ()


def remedy_for(op: str) -> Remedy | None:
    """Return the remedy of an operator, the first in the table whose glob matches.

    Args:
        op: full overload name, as in ``aten::fmax.out``.
    """
    return next((remedy for remedy in remedies() if fnmatchcase(op, remedy.ops)), None)


@cache
def remedies() -> tuple[Remedy, ...]:
    """Return the table of remedies, in the order in which it is searched."""
    text = files(__package__).joinpath("remedies.yaml").read_text(encoding="utf-8")
    return tuple(
        Remedy(glob, Kind(row["kind"]), row["en"], row["zh"], tuple(row.get("uses", ())))
        for row in yaml.safe_load(text)
        for glob in row["ops"]
    )
