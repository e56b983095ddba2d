"""Calling back when a module has been imported, whoever imports it and whenever."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


def when_imported(name: str, callback: Callable[[], None]) -> None:
    """Call ``callback`` once, after module ``name`` has been executed; at once if it has been.

    ``callback`` must not raise: it runs inside somebody else's import.
    """
    watch = _watch_for(name)
    if _is_executed(name, watch):
        callback()
        return
    if watch is None:
        watch = _Watch(name)
        sys.meta_path.insert(0, watch)
    watch.callbacks.append(callback)


def forget(name: str) -> None:
    """Cancel what :func:`when_imported` has asked for ``name``."""
    watch = _watch_for(name)
    if watch is not None:
        watch.callbacks.clear()


def _is_executed(name: str, watch: _Watch | None) -> bool:
    module = sys.modules.get(name)
    if module is None:
        return False
    # While callbacks run, the import system still calls the module unfinished.
    unfinished = getattr(module.__spec__, "_initializing", False)
    return not unfinished or (watch is not None and watch.executed is module)


def _watch_for(name: str) -> _Watch | None:
    return next((f for f in sys.meta_path if isinstance(f, _Watch) and f.name == name), None)


class _Watch(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the others find the module, and wraps its execution.

    It stays in ``sys.meta_path`` when it is done: another thread may be walking that list, and
    would skip a finder if one before it were taken out.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.callbacks: list[Callable[[], None]] = []
        self.executed: ModuleType | None = None
        self._asking_the_others = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        # The import system holds the module's lock, so no other thread is here for this name.
        if name != self.name or not self.callbacks or self._asking_the_others:
            return None
        self._asking_the_others = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking_the_others = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_then_call(module: ModuleType) -> None:
            execute(module)
            self.executed = module
            callbacks, self.callbacks = self.callbacks, []
            for callback in callbacks:
                callback()

        # On the instance: module.__loader__ stays what the others expect it to be.
        spec.loader.exec_module = execute_then_call  # type: ignore[method-assign]
        return spec
