"""What crossed the simulated runtime's boundary: an independent witness for every counter.

It must be read in the process that it is about. Reading it is no runtime call.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Snapshot:
    """Counts at one moment, or, as a difference, between two."""

    h2h_bytes: int
    h2d_bytes: int
    d2h_bytes: int
    d2d_bytes: int
    h2h_calls: int
    h2d_calls: int
    d2h_calls: int
    d2d_calls: int
    kernels: int
    api_calls: int

    def __sub__(self, earlier: Snapshot) -> Snapshot:
        return Snapshot(
            *(getattr(self, field.name) - getattr(earlier, field.name) for field in fields(self))
        )


class Ledger:
    """Reads the counters of the libascendcl.so that this process has loaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libascendcl.so")
        if not hasattr(self._library, "cann_sim_totals"):
            raise RuntimeError("the libascendcl.so of this process is not the simulated one")
        self._library.cann_sim_totals.restype = ctypes.POINTER(
            ctypes.c_uint64 * len(fields(Snapshot))
        )
        self._totals = self._library.cann_sim_totals().contents

    def snapshot(self) -> Snapshot:
        """Return the counts up to now; subtract an earlier one from a later one."""
        return Snapshot(*self._totals)

    def functions(self) -> dict[str, int]:
        """Return how often each runtime function was called, by name."""
        return self._walk("cann_sim", self._library, "function")

    def kernels(self) -> dict[str, int]:
        """Return how often each aclnn kernel ran, by name; empty before the first one."""
        try:
            operators = ctypes.CDLL("libopapi.so")
        except OSError:
            return {}
        return self._walk("cann_sim", operators, "kernel")

    def missing_operators(self) -> list[str]:
        """Return the aclnn names that op-plugin looked up in vain so far.

        Only some of them matter: others are probed for a newer version of the same operator.
        """
        names = self._library.cann_sim_missing_names
        names.restype = ctypes.c_char_p
        return [name for name in names().decode().split(",") if name]

    @staticmethod
    def _walk(prefix: str, library: ctypes.CDLL, what: str) -> dict[str, int]:
        first = library[f"{prefix}_first_{what}"]
        following = library[f"{prefix}_next_{what}"]
        name = library[f"{prefix}_{what}_name"]
        calls = library[f"{prefix}_{what}_calls"]
        first.restype = following.restype = ctypes.c_void_p
        following.argtypes = name.argtypes = calls.argtypes = [ctypes.c_void_p]
        name.restype, calls.restype = ctypes.c_char_p, ctypes.c_uint64
        counts: dict[str, int] = {}
        at = first()
        while at:
            counts[name(at).decode()] = calls(at)
            at = following(at)
        return dict(sorted(counts.items()))
