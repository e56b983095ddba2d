"""The native hook, seen from Python: one object, loaded once, asked through ctypes."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from npu_fallback_exporter.config import Mode, ModeSource, Track
from npu_fallback_exporter.errors import ArmError
from npu_fallback_exporter.instrument.hook_path import HookTarget, find

_ERROR_BYTES = 2048


class _Config(ctypes.Structure):
    """``nfe_config`` of ``hook_api.h``."""

    _fields_ = (
        ("directory", ctypes.c_char_p),
        ("directory_is_default", ctypes.c_int32),
        ("group", ctypes.c_int64),
        ("max_ops", ctypes.c_uint64),
        ("visible_devices", ctypes.c_char_p),
        ("torch_npu_version", ctypes.c_char_p),
        ("cann_version", ctypes.c_char_p),
        ("hook_version", ctypes.c_char_p),
        ("vendor_refuses", ctypes.c_int32),
        ("track", ctypes.c_int32),
        ("explicit_kernels", ctypes.c_char_p),
    )


class Sight(ctypes.Structure):
    """``nfe_sight`` of ``hook_api.h``: one look at an event."""

    _fields_ = (
        ("op", ctypes.c_char_p),
        ("arguments", ctypes.c_char_p),
        ("thread", ctypes.c_uint64),
        ("unix_ns", ctypes.c_uint64),
        ("generation", ctypes.c_uint32),
        ("op_row", ctypes.c_uint32),
        ("is_first", ctypes.c_int32),
        ("site_bytes", ctypes.c_uint32),
        ("site", ctypes.POINTER(ctypes.c_char)),
        ("caller_waits", ctypes.POINTER(ctypes.c_int32)),
    )


SIGHT_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(Sight))

#: A function wrapped in :data:`SIGHT_CALLBACK`.
SightCallback: TypeAlias = "ctypes._FuncPointer"


@dataclass(frozen=True)
class Rule:
    """What to do with operators of a glob: let them fall back, or refuse them, in every mode."""

    glob: str
    allow: bool


@dataclass(frozen=True)
class HookConfig:
    """What the hook needs to make its page. ``visible_devices`` is ``None`` when unset."""

    directory: Path
    directory_is_default: bool
    group: int | None
    max_ops: int
    visible_devices: str | None
    torch_npu_version: str
    cann_version: str
    hook_version: str
    vendor_refuses: bool
    track: Track
    explicit_kernels: tuple[str, ...]


class Hook:
    """The loaded hook. Its functions do not throw; those that fail raise :class:`ArmError`."""

    def __init__(self, path: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ArmError(
                "hook", f"cannot load the hook {path} ({error})", "build it anew: " + _BUILD
            ) from error
        self._library.nfe_layout_json.restype = ctypes.c_char_p
        self._library.nfe_torch_version.restype = ctypes.c_char_p
        self._library.nfe_page_path.restype = ctypes.c_size_t
        self._library.nfe_page_path.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    @property
    def layout_json(self) -> str:
        """The page format that this binary writes."""
        return str(self._library.nfe_layout_json().decode())

    @property
    def torch_version(self) -> str:
        """The version of PyTorch that it was compiled for."""
        return str(self._library.nfe_torch_version().decode())

    @property
    def has_fallback(self) -> bool:
        """Whether torch_npu's fallback is registered."""
        return bool(self._library.nfe_has_fallback())

    @property
    def armed(self) -> bool:
        """Whether the hook counts in this process."""
        return bool(self._library.nfe_armed())

    @property
    def page_path(self) -> Path | None:
        """Path of the page; ``None`` when there is none, as in a child before its first count."""
        size = self._library.nfe_page_path(None, 0)
        buffer = ctypes.create_string_buffer(size)
        self._library.nfe_page_path(buffer, size)
        return Path(buffer.value.decode()) if buffer.value else None

    def set_policy(self, mode: Mode, source: ModeSource, rules: Iterable[Rule]) -> None:
        """Set the mode and the rules; where several match an operator, the last one decides."""
        lines = "\n".join(f"{'+' if rule.allow else '-'}{rule.glob}" for rule in rules)
        self._call(
            self._library.nfe_set_policy,
            ctypes.c_uint32(mode),
            ctypes.c_uint32(source),
            lines.encode(),
        )

    def forbid(self, allowed: Iterable[str]) -> None:
        """Begin a block in this thread in which only operators of these globs fall back."""
        self._call(self._library.nfe_forbid_enter, "\n".join(allowed).encode())

    def end_forbid(self) -> None:
        """End the innermost block of this thread."""
        self._library.nfe_forbid_leave()

    def set_call_sites(self, record: bool, callback: SightCallback | None) -> None:
        """Say whom to ask where an operator was called from. The caller keeps the callback alive.

        With ``None`` this returns when no callback runs any more (or after 0.1 s).
        """
        self._library.nfe_set_call_sites(
            ctypes.c_int32(record), SIGHT_CALLBACK() if callback is None else callback
        )

    def look_again(self) -> None:
        """Ask about the next events of every operator as about its first ones."""
        self._library.nfe_look_again()

    def append_note(self, sight: Sight, note_type: int, text: str) -> bool:
        """Append a note on a sight to the page; false: it found no room."""
        status = self._library.nfe_append_note(
            ctypes.c_uint32(sight.generation),
            ctypes.c_uint32(note_type),
            ctypes.c_uint32(sight.op_row),
            ctypes.c_uint64(sight.unix_ns),
            ctypes.c_int32(sight.is_first),
            text.encode(errors="backslashreplace"),
        )
        return bool(status == 0)

    def arm(self, config: HookConfig) -> None:
        """Make the page and count from now on. Armed already, it changes nothing."""
        visible = config.visible_devices
        native = _Config(
            directory=bytes(config.directory),
            directory_is_default=config.directory_is_default,
            group=-1 if config.group is None else config.group,
            max_ops=config.max_ops,
            visible_devices=None if visible is None else visible.encode(errors="surrogateescape"),
            torch_npu_version=config.torch_npu_version.encode(),
            cann_version=config.cann_version.encode(),
            hook_version=config.hook_version.encode(),
            vendor_refuses=config.vendor_refuses,
            track=config.track,
            explicit_kernels="\n".join(config.explicit_kernels).encode(),
        )
        self._call(self._library.nfe_arm, ctypes.byref(native))

    def disarm(self) -> None:
        """Put the dispatcher back as it was. Threads inside a fallback finish undisturbed."""
        self._library.nfe_disarm()

    @staticmethod
    def _call(function: Callable[..., int], *arguments: object) -> None:
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        if function(*arguments, error, ctypes.c_size_t(_ERROR_BYTES)) != 0:
            reason, what, next_step = error.value.decode(errors="replace").split("\n", 2)
            raise ArmError(reason, what, next_step)


_BUILD = "npu-fallback-exporter build-hook"


@functools.cache
def load(preferred: Path | None = None) -> Hook:
    """Find and load the hook for this process's PyTorch.

    Raises:
        ArmError: there is none, or it does not load.
    """
    target = HookTarget.of_this_process()
    path = find(target, preferred)
    if path is None:
        raise ArmError(
            "hook",
            f"there is no hook for PyTorch {target.torch_version} on {target.machine}",
            f"run: {_BUILD}",
        )
    hook = Hook(path)
    if hook.torch_version != target.torch_version:
        raise ArmError(
            "hook",
            f"the hook {path} is for PyTorch {hook.torch_version}, not {target.torch_version}",
            f"run: {_BUILD} --force",
        )
    return hook
