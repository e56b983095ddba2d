"""``no_npu_fallback``: a pytest marker and fixture that fails a test in which operators fall back.

The test runs to its end, so that the report names every operator. Nothing of torch is imported
before such a test runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from npu_fallback_exporter.instrument.hook import Hook
    from npu_fallback_exporter.pages.notes import Place

_NAME = "no_npu_fallback"
_PLACES_TOLD = 3


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{_NAME}(allow=[...]): fail the test if an operator runs on the CPU instead of the NPU; "
        "allow: operators that may, as in aten::fmax.out, aten::isin*, torch.fmax",
    )


@pytest.fixture
def no_npu_fallback() -> None:
    """Fail the test if an operator runs on the CPU instead of the NPU while its body runs."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Watch the body of a test that forbids fallbacks."""
    __tracebackhide__ = True
    markers = list(item.iter_markers(_NAME))
    if not markers and _NAME not in getattr(item, "fixturenames", ()):
        return (yield)
    allowed = _allowed(markers)
    seen = _Seen()
    try:
        with _watched(seen):
            result = yield
    except BaseException:
        report = seen.report(allowed)
        if report:
            item.add_report_section("call", "fallbacks to the CPU", report)
        raise
    report = seen.report(allowed)
    if report:
        pytest.fail(report, pytrace=False)
    return result


def _allowed(markers: Iterable[pytest.Mark]) -> tuple[str, ...]:
    from npu_fallback_exporter.errors import ConfigError
    from npu_fallback_exporter.op_names import checked_globs

    try:
        return tuple(
            glob
            for marker in markers
            for name in _names(*marker.args, **marker.kwargs)
            for glob in checked_globs(name, "allow")
        )
    except (ConfigError, TypeError) as error:
        pytest.fail(f"@pytest.mark.{_NAME}: {error}", pytrace=False)


def _names(*, allow: Iterable[str] = ()) -> tuple[str, ...]:
    return (allow,) if isinstance(allow, str) else tuple(allow)


@dataclass
class _Seen:
    """What fell back while a test ran."""

    events: Counter[str] = field(default_factory=Counter)
    places: dict[str, Counter[Place]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, op: str, place: Place) -> None:
        with self._lock:
            self.places.setdefault(op, Counter())[place] += 1

    def report(self, allowed: tuple[str, ...]) -> str:
        """Return what to say of operators that are not allowed; empty: there are none."""
        forbidden = [
            (op, count)
            for op, count in self.events.most_common()
            if not any(fnmatchcase(op, glob) for glob in allowed)
        ]
        if not forbidden:
            return ""
        lines = [f"operators ran on the CPU instead of the NPU, which {_NAME} forbids:"]
        for op, count in forbidden:
            lines.append(f"  {op}: {count} {'time' if count == 1 else 'times'}")
            lines += [f"    at {place}" for place in self._places_of(op)]
        names = ", ".join(f'"{op}"' for op, _ in forbidden)
        lines.append(f"to allow them: @pytest.mark.{_NAME}(allow=[{names}])")
        return "\n".join(lines)

    def _places_of(self, op: str) -> list[str]:
        places = [place for place, _ in self.places.get(op, Counter()).most_common()]
        told = [
            str(place) if place.file else "a thread without Python code, such as autograd's"
            for place in places[:_PLACES_TOLD]
        ]
        left = len(places) - len(told)
        return [*told, f"{left} more places"] if left else told


@contextmanager
def _watched(seen: _Seen) -> Iterator[None]:
    """Fill ``seen`` with what the block causes, when it ends."""
    from npu_fallback_exporter.instrument.call_sites import heard

    hook = _armed_hook()
    before = _counts()
    with heard(hook, seen.hear):
        try:
            yield
        finally:
            seen.events = _counts() - before


def _counts() -> Counter[str]:
    from npu_fallback_exporter.instrument.stats import get_fallback_stats

    counts: Counter[str] = Counter()
    for op in get_fallback_stats().ops:
        counts[op.op] += op.events + op.blocked
    return counts


def _armed_hook() -> Hook:
    """Arm this process if it is not armed; a test must not pass because nobody watched."""
    import importlib.util
    import os

    from npu_fallback_exporter.config import ServerSettings
    from npu_fallback_exporter.instrument import arming

    if not arming.is_armed():
        # What the environment asks for; else the mode that changes nothing.
        wanted = ServerSettings.from_environ(os.environ).wanted
        armed = arming.install(None if wanted else "observe")
        if not armed and importlib.util.find_spec("torch_npu") is not None:
            importlib.import_module("torch_npu")  # the hook is armed after it
    hook = arming.hook()
    if hook is None or not hook.armed:
        pytest.fail(
            f"{_NAME} watches nothing: the hook is not armed: see the captured log, or run "
            "npu-fallback-exporter build-hook",
            pytrace=False,
        )
    return hook
