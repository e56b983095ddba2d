"""A routing table, read from the dispatcher of this process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from .conditions import conditions
from .errors import TableError
from .table import Entry, Route, RoutingTable, of_entries, render

# What the dispatcher takes before the backend fallback, when an operator has no kernel for the NPU.
_COMPOSITE_KEYS = (
    "CompositeExplicitAutogradNonFunctional",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
)
# Kernels of these are taken by tensors of other layouts, whatever the operator has for dense ones.
_LAYOUT_KEYS = {
    "SparsePrivateUse1": "sparse COO",
    "SparseCsrPrivateUse1": "sparse CSR",
    "NestedTensorPrivateUse1": "nested",
    "QuantizedPrivateUse1": "quantized",
}
_OTHER_LAYOUTS = "its tensors are not {}"
_NPU, _CPU = "PrivateUse1", "CPU"


def torch_npu_is_installed() -> bool:
    """Return whether torch_npu could be imported here; imports nothing."""
    return find_spec("torch") is not None and find_spec("torch_npu") is not None


def live_table() -> RoutingTable:
    """Return the routes of every operator that is defined in this process.

    Imports torch and torch_npu; initialises no device.

    Raises:
        TableError: torch_npu is not installed or cannot be imported.
    """
    import_torch_npu()
    import torch

    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    entries = (_entry(op, has_kernel) for op in torch._C._dispatch_get_all_op_names())
    return RoutingTable(
        version("torch_npu").partition("+")[0],
        _soc(),
        of_entries(entries),
        torch.__version__.partition("+")[0],
        live=True,
    )


def write_table(path: str | os.PathLike[str]) -> RoutingTable:
    """Write the table of this process to a file, as the package carries them, and return it.

    Raises:
        TableError: see :func:`live_table`.
        OSError: the file cannot be written.
    """
    table = live_table()
    Path(path).write_text(render(table), encoding="utf-8")
    return table


def import_torch_npu() -> None:
    """Import torch and torch_npu.

    Raises:
        TableError: they are not installed, or their libraries cannot be loaded.
    """
    try:
        with redirect_stdout(sys.stderr):  # where torch_npu prints warnings of its own
            import torch  # noqa: F401
            import torch_npu  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise TableError(
            f"torch_npu cannot be imported: {reason}",
            "install it beside its CANN, or name a version with --torch-npu",
        ) from error
    try:
        version("torch_npu")
    except PackageNotFoundError:
        raise TableError(
            "torch_npu has no package metadata, so its version is unknown", "install it with pip"
        ) from None


def _entry(op: str, has_kernel: Callable[[str, str], bool]) -> Entry:
    own = has_kernel(op, _NPU)
    layouts = [name for key, name in _LAYOUT_KEYS.items() if has_kernel(op, key)]
    condition = conditions().get(op)
    if condition and (own or layouts):
        return Entry(op, Route.EXPLICIT, condition)
    if own:
        return Entry(op, Route.NPU_KERNEL)
    if any(has_kernel(op, key) for key in _COMPOSITE_KEYS):
        return Entry(op, Route.COMPOSITE)
    route = Route.FALLBACK if has_kernel(op, _CPU) else Route.UNSUPPORTED
    return Entry(op, route, _OTHER_LAYOUTS.format(" or ".join(layouts)) if layouts else None)


def _soc() -> str:
    from torch_npu import _C

    try:
        return str(_C._npu_getDeviceName())
    except (AttributeError, RuntimeError):
        return "unknown"


def registered_at(op: str) -> str | None:
    """Return the source file and line that registered the NPU kernel of an operator, if any."""
    import torch

    for line in torch._C._dispatch_dump(op).splitlines():
        found = re.match(r"PrivateUse1: registered at (\S+)", line)
        if found:
            return found[1]
    return None
