"""When the NPU kernels that may compute on the host do so."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def conditions() -> Mapping[str, str]:
    """Return, by full overload name, the condition under which its kernel computes on the host.

    The condition completes the sentence "its kernel computes on the host if ...". Read from the
    sources of op-plugin, from which torch_npu takes most of its kernels.
    """
    text = files(__package__).joinpath("conditions.tsv").read_text(encoding="utf-8")
    rows = (line.partition("\t") for line in text.splitlines() if not line.startswith("#"))
    return {op: condition for op, _, condition in rows}
