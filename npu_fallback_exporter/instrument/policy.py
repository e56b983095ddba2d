"""What may fall back in this process, changed while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from npu_fallback_exporter.config import parse_mode
from npu_fallback_exporter.errors import ConfigError
from npu_fallback_exporter.instrument import arming
from npu_fallback_exporter.instrument.hook import Rule
from npu_fallback_exporter.op_names import checked_globs


def set_mode(mode: str) -> None:
    """Change the mode of this process, whatever its environment says.

    Args:
        mode: ``observe``, ``warn`` or ``strict``.

    Raises:
        ConfigError: ``mode`` is none of these.
        ArmError: :func:`install` was not called, or could not arm.
    """
    arming.change_policy(parse_mode(mode, "mode"), ())


def set_op_policy(op: str, policy: Literal["allow", "block"]) -> None:
    """Let an operator fall back in strict mode, or refuse it in every mode.

    Later calls win over earlier ones, and over ``NPU_FALLBACK_ALLOW``.

    Args:
        op: an operator (``aten::fmax.out``; ``aten::fmax`` for all its overloads), a glob
            (``aten::isin*``) or a Python name (``torch.isin``).
        policy: ``allow`` or ``block``.

    Raises:
        ConfigError: ``op`` names no operator, or ``policy`` is another word.
        ArmError: :func:`install` was not called, or could not arm.
    """
    if policy not in ("allow", "block"):
        raise ConfigError(f"policy {policy!r} is not known", "use 'allow' or 'block'")
    globs = checked_globs(op, "op")
    arming.change_policy(None, tuple(Rule(glob, allow=policy == "allow") for glob in globs))


@contextmanager
def forbid_fallback(allow: Iterable[str] = ()) -> Iterator[None]:
    """Raise when an operator would fall back in this thread and in this block, whatever the mode.

    Blocks nest; an operator falls back only if every block around it allows it, and the policy of
    the process does too. Other threads are not affected: not those that the block starts, and not
    those on which PyTorch runs the backward pass of NPU tensors.

    Args:
        allow: operators that may fall back, as :func:`set_op_policy` takes them.

    Raises:
        RuntimeError: from the operator itself, before anything is copied or computed.
        ConfigError: an entry of ``allow`` names no operator.
        ArmError: the hook is not armed when the block begins, or not any more when it ends, so
            that nothing is, or was, watched.
    """
    names = (allow,) if isinstance(allow, str) else tuple(allow)
    globs = [glob for name in names for glob in checked_globs(name, "allow")]
    hook = arming.hook()
    if hook is None or not hook.armed:
        raise arming.not_armed("forbid_fallback() forbids nothing")
    hook.forbid(globs)
    try:
        yield
    finally:
        hook.end_forbid()
    if not hook.armed:
        raise arming.not_armed("forbid_fallback() has not forbidden everything in its block")
