"""The environment of a server process, read once into a frozen value.

Names, defaults and meanings: docs/configuration.md.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npu_fallback_exporter.errors import ConfigError
from npu_fallback_exporter.op_names import globs

#: The page has room for this many distinct operators beside ``__other__``.
MAX_OPS_LIMIT = 511


class Mode(enum.IntEnum):
    """What happens at a fallback. Values as in ``page_layout.h``."""

    OBSERVE = 0
    WARN = 1
    STRICT = 2


class Track(enum.IntEnum):
    """How much is watched. Values as in ``page_layout.h``."""

    ALL = 0
    FALLBACKS = 1


class ModeSource(enum.IntEnum):
    """Where the mode came from. Values as in ``page_layout.h``."""

    DEFAULT = 0
    NPU_FALLBACK_MODE = 1
    TORCH_NPU_FALLBACK_CPU_DISABLE = 2
    TORCH_NPU_CPU_FALLBACK = 3
    ASCEND_OPP_DISABLE_FALLBACK = 4
    API = 5


_MODES = {
    "observe": Mode.OBSERVE,
    "auto": Mode.OBSERVE,
    "warn": Mode.WARN,
    "strict": Mode.STRICT,
    "error": Mode.STRICT,
}

#: Variables that say strict when NPU_FALLBACK_MODE is unset: the value that means strict, and the
#: other one that is accepted.
_STRICT_SWITCHES = {
    ModeSource.TORCH_NPU_FALLBACK_CPU_DISABLE: ("1", "0"),
    ModeSource.TORCH_NPU_CPU_FALLBACK: ("0", "1"),
    ModeSource.ASCEND_OPP_DISABLE_FALLBACK: ("1", "0"),
}


def parse_mode(text: str, variable: str = "NPU_FALLBACK_MODE") -> Mode:
    """Return the mode that ``text`` names.

    Raises:
        ConfigError: it names none.
    """
    try:
        return _MODES[text.strip().lower()]
    except KeyError:
        raise ConfigError(
            f"{variable}={text!r} is not a mode", f"set it to one of {', '.join(_MODES)}"
        ) from None


@dataclass(frozen=True)
class ServerSettings:
    """What a server process is told through its environment.

    Attributes:
        wanted: whether ``import torch`` arms the hook.
        mode: the mode in force; ``None`` when ``NPU_FALLBACK_MODE`` has an unknown value, in which
            case the process must not use the NPU unguarded (``mode_error`` says why).
        mode_source: where the mode came from.
        allow: globs over full overload names that may fall back in strict mode.
        directory: folder of the pages; ``None`` for the default one.
        group: id of the group that may read the pages; ``None`` for none.
        max_ops: distinct operators kept apart in this process.
        track: how much is watched.
        call_sites: whether Python frames and arguments of first sights are recorded.
        hook_path: folder of prebuilt hooks; ``None`` for the usual places.
        vendor_refuses: torch_npu's own switch says that it refuses every fallback.
        complaints: one line per value that is not accepted (its default is used instead) and per
            contradiction.
    """

    wanted: bool
    mode: Mode | None
    mode_source: ModeSource
    allow: tuple[str, ...] = ()
    directory: Path | None = None
    group: int | None = None
    max_ops: int = 256
    track: Track = Track.ALL
    call_sites: bool = True
    hook_path: Path | None = None
    vendor_refuses: bool = False
    mode_error: ConfigError | None = None
    complaints: tuple[ConfigError, ...] = field(default=())

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> ServerSettings:
        """Read the environment. Never raises: what is wrong is in the result."""
        reader = _Reader(environ)
        mode, source, mode_error = reader.mode()
        wanted = reader.wanted()
        return cls(
            wanted=wanted,
            mode=mode,
            mode_source=source,
            allow=allow_patterns(environ.get("NPU_FALLBACK_ALLOW", "")),
            directory=reader.folder("NPU_FALLBACK_DIR"),
            group=reader.group(),
            max_ops=reader.whole_number("NPU_FALLBACK_MAX_OPS", 256, 1, MAX_OPS_LIMIT),
            track=Track[reader.choice("NPU_FALLBACK_TRACK", ("all", "fallbacks")).upper()],
            call_sites=reader.choice("NPU_FALLBACK_CALL_SITES", ("1", "0")) == "1",
            hook_path=reader.folder("NPU_FALLBACK_HOOK_PATH"),
            vendor_refuses=_vendor_switch(environ),
            mode_error=mode_error,
            complaints=tuple(reader.complaints),
        )


def allow_patterns(text: str) -> tuple[str, ...]:
    """Split a comma-separated allow-list; names stand for operators as in ``op_names``."""
    items = (part.strip() for part in text.split(","))
    return tuple(glob for item in items if item for glob in globs(item))


def _vendor_switch(environ: Mapping[str, str]) -> bool:
    """Read torch_npu's switch as torch_npu reads it: strtol, and not 0."""
    text = environ.get("TORCH_NPU_FALLBACK_CPU_DISABLE", "").strip()
    sign = text[:1] if text[:1] in {"+", "-"} else ""
    rest = text[len(sign) :]
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return bool(digits) and int(digits) != 0


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.complaints: list[ConfigError] = []

    def mode(self) -> tuple[Mode | None, ModeSource, ConfigError | None]:
        text = self._environ.get("NPU_FALLBACK_MODE", "")
        strict_source = self._strict_source()
        if text:
            try:
                mode = parse_mode(text)
            except ConfigError as error:
                return None, ModeSource.NPU_FALLBACK_MODE, error
            if mode is not Mode.STRICT and _vendor_switch(self._environ):
                self._complain(
                    f"NPU_FALLBACK_MODE={text} does not keep torch_npu from refusing fallbacks "
                    "while TORCH_NPU_FALLBACK_CPU_DISABLE=1",
                    "unset TORCH_NPU_FALLBACK_CPU_DISABLE to let operators fall back",
                )
            return mode, ModeSource.NPU_FALLBACK_MODE, None
        if strict_source is not None:
            return Mode.STRICT, strict_source, None
        return Mode.WARN, ModeSource.DEFAULT, None

    def _strict_source(self) -> ModeSource | None:
        found: ModeSource | None = None
        says_allowed = ""
        for source, (strict, lax) in _STRICT_SWITCHES.items():
            value = self._environ.get(source.name, "")
            if value == strict:
                found = source if found is None else found
            elif value == lax:
                says_allowed = f"{source.name}={value}"
            elif value:
                self._complain(f"{source.name}={value!r} is ignored", "set it to 0 or 1")
        if found is not None and says_allowed:
            self._complain(
                f"{found.name}={self._environ[found.name]} says strict but {says_allowed} does not",
                "strict it is; set NPU_FALLBACK_MODE to say which you mean",
            )
        return found

    def wanted(self) -> bool:
        text = self._environ.get("NPU_FALLBACK_HOOK", "")
        mode_is_set = bool(self._environ.get("NPU_FALLBACK_MODE"))
        if text not in {"", "0", "1"}:
            self._complain(f"NPU_FALLBACK_HOOK={text!r} is ignored", "set it to 0 or 1")
            return mode_is_set
        if text == "0" and self._environ.get("NPU_FALLBACK_MODE", "") in {"strict", "error"}:
            self._complain(
                "NPU_FALLBACK_MODE=strict guards nothing while NPU_FALLBACK_HOOK=0",
                "unset one of them",
            )
        return text == "1" or (text == "" and mode_is_set)

    def folder(self, variable: str) -> Path | None:
        text = self._environ.get(variable, "")
        if text and not Path(text).is_absolute():
            self._complain(f"{variable}={text!r} is ignored", "set it to an absolute path")
            return None
        return Path(text) if text else None

    def choice(self, variable: str, accepted: tuple[str, ...]) -> str:
        """Return one of ``accepted``: the first of them is the default."""
        text = self._environ.get(variable, "")
        if text and text not in accepted:
            self._complain(f"{variable}={text!r} is ignored", f"set it to {' or '.join(accepted)}")
        return text if text in accepted else accepted[0]

    def group(self) -> int | None:
        if not self._environ.get("NPU_FALLBACK_GROUP"):
            return None
        group = self.whole_number("NPU_FALLBACK_GROUP", -1, 0, 2**32 - 2)
        return None if group < 0 else group

    def whole_number(self, variable: str, default: int, low: int, high: int) -> int:
        text = self._environ.get(variable, "")
        if not text:
            return default
        if text.isascii() and text.isdigit() and low <= int(text) <= high:
            return int(text)
        self._complain(
            f"{variable}={text!r} is ignored", f"set it to a whole number from {low} to {high}"
        )
        return default

    def _complain(self, what: str, next_step: str) -> None:
        self.complaints.append(ConfigError(what, next_step))
