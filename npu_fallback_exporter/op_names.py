"""From what a user calls an operator to globs over full overload names.

The dispatcher knows ``aten::fmax.out``; a user knows ``torch.fmax``. Which overload reaches the
NPU's key is not visible from the Python name, so a Python name stands for all overloads of its
operator.
"""

from __future__ import annotations

import re

from .errors import ConfigError

#: Python names whose operator bears another name, or that end in several. Without ``torch.``.
_ALIASES = {
    "inverse": ("linalg_inv_ex",),
    "linalg.inv": ("linalg_inv_ex",),
    "linalg.inv_ex": ("linalg_inv_ex",),
    "linalg.cholesky": ("linalg_cholesky_ex",),
    "linalg.cholesky_ex": ("linalg_cholesky_ex",),
    "det": ("_linalg_det",),
    "linalg.det": ("_linalg_det",),
    "logdet": ("_linalg_slogdet",),
    "slogdet": ("_linalg_slogdet",),
    "linalg.slogdet": ("_linalg_slogdet",),
    "linalg.solve": ("_linalg_solve_ex",),
    "linalg.solve_ex": ("_linalg_solve_ex",),
    "linalg.eigh": ("_linalg_eigh",),
    "linalg.eigvalsh": ("_linalg_eigh",),
    "linalg.eigvals": ("linalg_eig", "linalg_eigvals", "_linalg_eigvals"),
    "svd": ("_linalg_svd",),
    "linalg.svd": ("_linalg_svd",),
    "linalg.svdvals": ("_linalg_svd",),
    "linalg.lu_factor": ("linalg_lu_factor_ex",),
    "lu_solve": ("linalg_lu_solve",),
    "linalg.ldl_factor": ("linalg_ldl_factor_ex",),
    "cholesky_solve": ("_cholesky_solve_helper",),
    "logcumsumexp": ("_logcumsumexp",),
    "histogramdd": (
        "_histogramdd_bin_edges",
        "_histogramdd_from_bin_cts",
        "_histogramdd_from_bin_tensors",
    ),
    "special.gammaln": ("lgamma",),
    "special.psi": ("digamma",),
    "special.gammainc": ("igamma",),
    "special.gammaincc": ("igammac",),
    "special.multigammaln": ("mvlgamma", "lgamma"),
}

#: Modules whose name the operator bears in front of its own.
_PREFIXED_MODULES = ("fft", "linalg")

_OTHER_PACKAGES = {"torchvision.ops.nms": ("torchvision::nms",)}

_OPERATOR = re.compile(r"[\w*?\[\]!-]+::[\w.*?\[\]!-]+")


def globs(name: str) -> tuple[str, ...]:
    """Return the globs over full overload names that a user's name stands for.

    ``torch.isin`` becomes ``aten::isin`` and ``aten::isin.*``; ``torch.inverse`` the same of
    ``aten::linalg_inv_ex``. An operator without overload stands for all of its overloads, and
    anything else for itself.
    """
    if name in _OTHER_PACKAGES:
        return _OTHER_PACKAGES[name]
    if name.startswith("torch."):
        operators = _ALIASES.get(name.removeprefix("torch.")) or _operators(name)
        return tuple(glob for op in operators for glob in _with_overloads(f"aten::{op}"))
    base = name.rpartition("::")[2]
    if "::" in name and not set(base) & set(".*?["):
        return _with_overloads(name)
    return (name,)


def checked_globs(name: str, what: str) -> tuple[str, ...]:
    """Return :func:`globs` of a name that can name an operator.

    Raises:
        ConfigError: it cannot, so that a rule with it would never hold.
    """
    name = name.strip()
    if name.startswith("torch.") or name in _OTHER_PACKAGES or _OPERATOR.fullmatch(name):
        return globs(name)
    raise ConfigError(
        f"{what} {name!r} names no operator",
        "name it as in aten::fmax.out, aten::isin*, torchvision::nms or torch.fmax",
    )


def _operators(name: str) -> tuple[str, ...]:
    *modules, function = name.split(".")[1:]
    module = modules[-1] if modules else ""
    if module == "special":  # some of its functions are new names of older operators
        return (f"special_{function}", function)
    return (f"{module}_{function}" if module in _PREFIXED_MODULES else function,)


def _with_overloads(op: str) -> tuple[str, ...]:
    # x.lgamma_() ends in aten::lgamma.out, as torch.lgamma(x) does.
    names = [op] if not op.endswith("_") or op.endswith("__") else [op, op[:-1]]
    return tuple(glob for name in names for glob in (name, f"{name}.*"))
