"""Arming and disarming the hook in this process, and what happens when it cannot be armed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import mmap
import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

import npu_fallback_exporter
from npu_fallback_exporter.carried.retirement import tidy
from npu_fallback_exporter.config import Mode, ModeSource, ServerSettings, Track, parse_mode
from npu_fallback_exporter.errors import ArmError, NpuFallbackError
from npu_fallback_exporter.instrument import call_sites
from npu_fallback_exporter.instrument.hook import Hook, HookConfig, Rule, load
from npu_fallback_exporter.instrument.import_watch import forget, when_imported
from npu_fallback_exporter.pages.arm_failure import record
from npu_fallback_exporter.pages.discovery import default_folder

_LOG = logging.getLogger("npu_fallback_exporter")
_LOCK = threading.RLock()


class _State:
    hook: Hook | None = None
    wanted = False  # install() was called, and uninstall() was not since
    failed = False  # it is wanted, and cannot be armed
    settings: ServerSettings | None = None
    mode: Mode | None = None  # set by install(mode=...) or set_mode()
    rules: tuple[Rule, ...] = ()  # set by set_op_policy(), oldest first


def install(mode: str | None = None) -> bool:
    """Count fallbacks in this process from now on; idempotent.

    Where torch_npu is not imported yet, the hook is armed as soon as it is. Neither this nor
    arming initialises the device.

    Args:
        mode: ``observe``, ``warn`` or ``strict``; what the environment says when left out.

    Returns:
        Whether the hook is armed now. ``False``: it will be when torch_npu is imported, or it
        cannot be, in which case one line at level ERROR on the logger ``npu_fallback_exporter``
        says why and what to do.

    Raises:
        ConfigError: ``mode`` is none of these.
        ArmError: the hook cannot be armed, the mode is strict, and the NPU is in use already. In
            strict mode before that, the first use of the NPU raises it.
    """
    chosen = None if mode is None else parse_mode(mode, "mode")
    with _LOCK:
        if _State.wanted and chosen is None:
            return is_armed()
        _State.wanted = True
        _State.failed = False
        _State.mode = chosen if chosen is not None else _State.mode
        settings = _State.settings = ServerSettings.from_environ(os.environ)
        for complaint in settings.complaints:
            _LOG.error("npu-fallback-exporter: %s", complaint)
        if importlib.util.find_spec("torch_npu") is None:
            _fail(_no_torch_npu(), settings)
            return False
        when_imported("torch_npu", lambda: _arm(settings))
        return is_armed()


def uninstall() -> None:
    """Stop counting and leave the dispatcher exactly as it was; idempotent.

    What was counted stays in the page. Threads inside a fallback finish undisturbed. Mode and rules
    that were set at run time are forgotten.
    """
    with _LOCK:
        _State.wanted = False
        _State.mode = None
        _State.rules = ()
        forget("torch_npu")
        if _State.hook is not None:
            _State.hook.disarm()


def is_armed() -> bool:
    """Return whether the hook counts in this process."""
    return _State.hook is not None and _State.hook.armed


def hook() -> Hook | None:
    """Return the loaded hook, or ``None`` when it was never armed in this process."""
    return _State.hook


def change_policy(mode: Mode | None, rules: tuple[Rule, ...]) -> None:
    """Set the mode, add rules, or both; they hold as soon as the hook is armed.

    Raises:
        ArmError: nothing is armed here or about to be, so that nothing would come of it.
    """
    with _LOCK:
        if not _State.wanted or _State.failed:
            raise not_armed("the fallback policy cannot be changed")
        _State.mode = mode if mode is not None else _State.mode
        _State.rules += rules
        if is_armed():
            _apply_policy()
            if mode is not None and _State.settings is not None:
                _tell_what_strict_leaves_out(_State.settings)


def not_armed(what: str) -> ArmError:
    """Return the error of something that needs an armed process."""
    return ArmError(
        "not_armed",
        f"{what}: fallbacks are not watched in this process",
        "call npu_fallback_exporter.install() first, and see that it returns True",
    )


def _apply_policy() -> None:
    hook, settings = _State.hook, _State.settings
    assert hook is not None  # noqa: S101 - callers have checked
    assert settings is not None  # noqa: S101
    mode, source = settings.mode, settings.mode_source
    if _State.mode is not None:
        mode, source = _State.mode, ModeSource.API
    if mode is None:
        assert settings.mode_error is not None  # noqa: S101 - how ServerSettings is made
        raise _mode_failure(settings.mode_error)
    allowed = tuple(Rule(glob, allow=True) for glob in settings.allow)
    hook.set_policy(mode, source, allowed + _State.rules)


def _tell_what_strict_leaves_out(settings: ServerSettings) -> None:
    mode = _State.mode if _State.mode is not None else settings.mode
    if mode is Mode.STRICT and settings.track is Track.FALLBACKS:
        _LOG.warning(
            "npu-fallback-exporter: NPU_FALLBACK_TRACK=fallbacks: strict mode refuses the "
            "dispatcher's fallbacks only, not NPU kernels that compute on the host: unset it to "
            "have those refused too"
        )


def _no_torch_npu() -> ArmError:
    return ArmError(
        "torch_npu",
        "torch_npu is not installed, so there is no NPU to watch",
        "install it, or unset NPU_FALLBACK_HOOK and NPU_FALLBACK_MODE in this process",
    )


def _arm(settings: ServerSettings) -> None:
    """Arm now; torch_npu is imported. Raises only what strict mode must raise."""
    with _LOCK:
        if not _State.wanted:
            return
        try:
            if _State.mode is None and settings.mode_error is not None:
                raise _mode_failure(settings.mode_error)
            hook = _State.hook = load(settings.hook_path)
            _apply_policy()
            call_sites.record(hook, wanted=settings.call_sites)
            config = _hook_config(settings)
            # Before a page is added: perhaps nobody else removes those of ended processes.
            tidy(config.directory)
            hook.arm(config)
            _tell_what_strict_leaves_out(settings)
        except Exception as error:  # whatever it is, it is not the server's fault
            _fail(error, settings)


def _mode_failure(error: NpuFallbackError) -> ArmError:
    return ArmError("mode", error.what, error.next_step)


def _hook_config(settings: ServerSettings) -> HookConfig:
    return HookConfig(
        directory=settings.directory or default_folder(os.geteuid()),
        directory_is_default=settings.directory is None,
        group=settings.group,
        max_ops=settings.max_ops,
        visible_devices=os.environ.get("ASCEND_RT_VISIBLE_DEVICES"),
        torch_npu_version=_torch_npu_version(),
        cann_version=_cann_version(),
        hook_version=npu_fallback_exporter.__version__,
        vendor_refuses=settings.vendor_refuses and _vendor_has_switch(),
        track=settings.track,
        explicit_kernels=explicit_kernels(),
    )


def explicit_kernels() -> tuple[str, ...]:
    """Return the operators whose NPU kernel computes on the host under some condition."""
    lines = (Path(__file__).parent / "explicit_ops.txt").read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _torch_npu_version() -> str:
    version = getattr(sys.modules.get("torch_npu"), "__version__", "")
    return str(version)


def _cann_version() -> str:
    """Return the version of CANN as torch_npu read it; empty where it tells none."""
    try:
        import torch_npu

        return str(torch_npu._C._get_cann_version("CANN"))
    except Exception:  # an older torch_npu, or no CANN installation: not worth an arm failure
        return ""


def _vendor_has_switch() -> bool:
    """Return whether this torch_npu knows TORCH_NPU_FALLBACK_CPU_DISABLE.

    Versions do not tell (two release lines); the library does: it holds the name.
    """
    package = sys.modules["torch_npu"].__file__
    if package is None:
        return False
    library = Path(package).parent / "lib" / "libtorch_npu.so"
    try:
        with (
            library.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return content.find(b"TORCH_NPU_FALLBACK_CPU_DISABLE") >= 0
    except OSError:
        return False


def _fail(error: Exception, settings: ServerSettings) -> None:
    """Say once why the hook is not armed, count it, and keep what strict mode promised."""
    _State.failed = True
    failure = (
        error
        if isinstance(error, ArmError)
        else ArmError("other", f"{type(error).__name__}: {error}", "report it with this line")
    )
    mode = _State.mode if _State.mode is not None else settings.mode
    strict = mode is None or mode is Mode.STRICT
    consequence = "the first use of the NPU will raise" if strict else "nothing is counted"
    _LOG.error("npu-fallback-exporter: not armed, %s: %s", consequence, failure)
    record(settings.directory or default_folder(os.geteuid()), failure.reason, settings.group)
    if strict:
        _refuse_npu(failure)


def _refuse_npu(failure: ArmError) -> None:
    """Make the first use of the NPU in this process raise ``failure``.

    ``torch_npu.npu._lazy_init`` is what every way to the device calls first, from Python and from
    C++, until it has succeeded once. (Its queue of deferred calls would be the documented way, but
    torch_npu 2.13 turns an exception from there into a NameError.)
    """

    def refuse() -> NoReturn:
        # A new one each time: an exception keeps the frames it passed through.
        raise ArmError(failure.reason, failure.what, failure.next_step)

    def guard() -> None:
        npu = sys.modules["torch_npu.npu"]
        if npu.is_initialized():
            raise failure
        vars(npu)["_lazy_init"] = refuse

    if importlib.util.find_spec("torch_npu") is not None:
        when_imported("torch_npu", guard)
