"""``python -m tests.other_versions.python_names``: public Python functions of ATen's operators.

Writes ``npu_fallback_exporter/routing/python_names.tsv`` from the installed PyTorch: the name of an
operator without namespace and overload, a tab, and the functions of that name, as users call them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import npu_fallback_exporter.routing

TARGET = Path(npu_fallback_exporter.routing.__file__).with_name("python_names.tsv")


def rows() -> Iterator[str]:
    """The lines of the file."""
    import torch

    names = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    for name in sorted(names):
        operator = name.removeprefix("aten::")
        if operator == name or operator.startswith("_"):
            continue
        found = list(_functions(operator))
        if found:
            yield f"{operator}\t{' '.join(found)}"


def _functions(operator: str) -> Iterator[str]:
    import torch

    places = [
        ("torch", torch, operator),
        ("torch.nn.functional", torch.nn.functional, operator),
        ("torch.Tensor", torch.Tensor, operator),
    ]
    for prefix in ("linalg", "fft", "special"):
        if operator.startswith(f"{prefix}_"):
            module = getattr(torch, prefix)
            places.append((f"torch.{prefix}", module, operator.removeprefix(f"{prefix}_")))
    for place, module, function in places:
        if callable(getattr(module, function, None)):
            yield f"{place}.{function}"


def main() -> None:
    TARGET.write_text("\n".join(rows()) + "\n")


if __name__ == "__main__":
    main()
