"""Where in the Python code an operator was called from, told to the hook when it asks.

The hook asks at the first events of an operator, from a thread of its own while the operator's
thread stands still (``call_site.h``). What is answered goes into the page as notes.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType

from npu_fallback_exporter.instrument.hook import SIGHT_CALLBACK, Hook, Sight
from npu_fallback_exporter.pages import layout
from npu_fallback_exporter.pages.notes import Place

# Frames of the first call site of an operator, and of further ones: notes have little room.
_FRAMES_OF_FIRST = 20
_FRAMES_OF_OTHERS = 8
_FRAMES_LOOKED_AT = 100
_TEXT_BYTES = 200  # of a file or function name; the end of a path says most

_NEW, _KNOWN, _UNKNOWN = 1, 0, -1


class CallSites:
    """Answers the hook's questions; keep it as long as the hook may ask."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._generation = 0
        self._sites: dict[bytes, set[Place]] = {}
        self._signatures: dict[bytes, list[bytes]] = {}
        self._not_user = tuple(_folders_of_others())
        self.callback = SIGHT_CALLBACK(self._look)

    def _look(self, pointer: object) -> int:
        try:
            return self._answer(pointer.contents)  # type: ignore[attr-defined]
        except Exception:  # an operator has run well, and there is nobody here to tell
            return _UNKNOWN

    def _answer(self, sight: Sight) -> int:
        if sight.generation != self._generation:  # a forked child, which has a page of its own
            self._generation = sight.generation
            self._sites.clear()
            self._signatures.clear()
        frame = sys._current_frames().get(sight.thread)
        frame_count = _FRAMES_OF_FIRST if sight.is_first else _FRAMES_OF_OTHERS
        stack = list(islice(_places(frame), _FRAMES_LOOKED_AT))
        if not sight.caller_waits.contents.value:
            return _UNKNOWN  # the thread has run on meanwhile: its frames tell nothing
        site = next((place for place in stack if self._is_user(place)), None)
        if site is None:
            # A thread without Python code, such as one of autograd's: told once, by its arguments.
            site, stack = Place("", 0, ""), []
        self._tell(sight, site)
        for listener in tuple(_listeners):
            listener(sight.op.decode(errors="replace"), site)
        known = self._sites.setdefault(sight.op, set())
        if site in known:
            return _KNOWN
        known.add(site)
        self._note(sight, site, stack[:frame_count])
        return _NEW

    def _is_user(self, place: Place) -> bool:
        return not place.file.startswith(self._not_user)

    def _note(self, sight: Sight, site: Place, stack: list[Place]) -> None:
        signatures = self._signatures.setdefault(sight.op, [])
        arguments: bytes = sight.arguments
        is_new = bool(arguments) and arguments not in signatures
        if is_new and self._hook.append_note(sight, layout.NOTE_ARGUMENTS, arguments.decode()):
            signatures.append(arguments)
        note = {
            "site": _bounded(site) if site.file else None,
            "stack": [_bounded(place) for place in stack],
            "signature": signatures.index(arguments) if arguments in signatures else None,
        }
        text = json.dumps(note, separators=(",", ":"))
        self._hook.append_note(sight, layout.NOTE_CALL_SITE, text)

    @staticmethod
    def _tell(sight: Sight, site: Place) -> None:
        if not site.file:
            return
        text = str(site).encode(errors="backslashreplace")[: sight.site_bytes - 1] + b"\0"
        for index, byte in enumerate(text):
            sight.site[index] = byte


#: Called with operator and place at every look, on a thread of the hook; they must not raise.
_listeners: list[Callable[[str, Place], None]] = []


@contextmanager
def heard(hook: Hook, listener: Callable[[str, Place], None]) -> Iterator[None]:
    """Have ``listener`` called with the operator and the place of fallbacks in a block.

    Of every operator the first 64 events in the block are heard. The place of a thread without
    Python code has an empty file name.
    """
    _listeners.append(listener)
    hook.look_again()
    try:
        yield
    finally:
        _listeners.remove(listener)


class _State:
    call_sites: CallSites | None = None


def record(hook: Hook, *, wanted: bool) -> None:
    """Answer the questions of a hook from now on, or have it ask none."""
    if not wanted:
        hook.set_call_sites(False, None)
        return
    if _State.call_sites is None:
        _State.call_sites = CallSites(hook)
        # Python ends after this, and no thread may enter it then.
        atexit.register(hook.set_call_sites, False, None)
    hook.set_call_sites(True, _State.call_sites.callback)


def _places(frame: FrameType | None) -> Iterator[Place]:
    """Yield the lines of a stack, innermost first, without those of this file."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename != __file__:
            name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has no qualified names
            yield Place(code.co_filename, frame.f_lineno or 0, name)
        frame = frame.f_back


def _bounded(place: Place) -> list[object]:
    return [place.file[-_TEXT_BYTES:], place.line, place.function[-_TEXT_BYTES:]]


def _folders_of_others() -> Iterator[str]:
    """Yield the beginnings of file names that are not the user's: PyTorch's and ours."""
    yield from ("<eval_with_key>", "<frozen ", "<torch_package")
    yield f"{Path(__file__).parent}{os.sep}"
    for package in ("torch", "torch_npu", "functorch"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            yield f"{Path(spec.origin).parent}{os.sep}"
