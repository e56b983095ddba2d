"""The web configuration in force, read again whenever a file of it changes."""

from __future__ import annotations

import hashlib
import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ..errors import ConfigError
from .web_config import WebConfig, parse

_log = logging.getLogger(__name__)

_INTERVAL_SECONDS = 1.0
_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class InForce:
    """One state of the files, as a whole: nothing of it changes any more.

    Attributes:
        config: what the file says.
        context: for new connections; ``None``: they are not encrypted.
    """

    config: WebConfig
    context: ssl.SSLContext | None


class _Files:
    """What one reading saw: the content of every file, or why there is none."""

    def __init__(self) -> None:
        self.seen: dict[Path, bytes] = {}

    def read(self, path: Path) -> bytes:
        try:
            with path.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self.seen[path] = reason.encode()
            raise ConfigError(f"cannot read {path} ({reason})", "make it readable") from None
        # Keys stay in memory no longer than needed.
        self.seen[path] = hashlib.sha256(content).digest()
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigError(f"{path} is larger than {_MAX_FILE_BYTES >> 20} MiB", "check it")
        return content


class WatchedConfig:
    """Holds what is in force, and looks after the files once a second in a thread of its own.

    A new state that is bad leaves the old one in force, which is said once. So does one that
    switches encryption on or off, or stops asking for passwords: a file that is only half written
    must open no door.

    Args:
        path: of the file; ``None``: there is none, and nothing is configured.

    Raises:
        ConfigError: the file cannot be used.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else path.absolute()
        self._files = _Files()
        self.current = InForce(WebConfig(), None)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="web-config", daemon=True)
        if self._path is not None:
            try:
                self.current = _load(self._path, self._files)
            except ConfigError as error:
                raise ConfigError(f"{self._path}: {error.what}", error.next_step) from None

    def __enter__(self) -> WatchedConfig:
        """Begin to look after the files."""
        if self._path is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Stop it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_INTERVAL_SECONDS)

    def refresh(self) -> None:
        """Read the files if one of them has changed since the last reading, good or bad."""
        if self._path is None or not self._has_changed():
            return
        self._files = _Files()
        try:
            new = _load(self._path, self._files)
            _forbid_less(self.current.config, new.config)
        except ConfigError as error:
            _log.error("%s: the new content is not used: %s", self._path, error)
            return
        self.current = new
        _log.info("%s: the new content is in force", self._path)

    def _has_changed(self) -> bool:
        now = _Files()
        for path in self._files.seen:
            try:
                now.read(path)
            except ConfigError:
                continue
        return now.seen != self._files.seen

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL_SECONDS):
            try:
                self.refresh()
            except Exception as error:
                _log.error("%s: cannot be read again: %s", self._path, type(error).__name__)


def _load(path: Path, files: _Files) -> InForce:
    config = parse(files.read(path), path.parent)
    context = None if config.tls is None else config.tls.context(files.read)
    return InForce(config, context)


def _forbid_less(old: WebConfig, new: WebConfig) -> None:
    if (old.tls is None) != (new.tls is None):
        raise ConfigError(
            "TLS cannot be switched on or off while it runs", "restart the exporter for that"
        )
    if old.authenticates and not new.authenticates:
        raise ConfigError(
            "authentication cannot be switched off while it runs", "restart the exporter for that"
        )
