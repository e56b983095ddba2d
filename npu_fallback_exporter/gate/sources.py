"""Both sides, from Prometheus or from saved scrapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import QuestionError
from . import saved
from .prometheus import Found, Prometheus
from .traffic import Side, Timed, Window, side_of

#: Baseline and candidate.
Sides = tuple[Side, Side]


def from_prometheus(
    server: Prometheus,
    selectors: tuple[str, str],
    start: float,
    end: float,
    warmup: float,
    *,
    ready: bool,
) -> Sides:
    """Read both sides between two Unix times.

    Args:
        server: where from.
        selectors: label matchers of baseline and candidate.
        start: of the window.
        end: of the window.
        warmup: seconds after the start of a process that do not count.
        ready: whether all that ran when the window starts had warmed up.

    Raises:
        QuestionError: the selectors or the window cannot be.
        SourceError: Prometheus gives no answer.
    """
    if start >= end:
        raise QuestionError("the window ends before it starts", "check --since and --at")
    baseline, candidate = (server.find(text, start - warmup, end) for text in selectors)
    both = baseline.scrapes.keys() & candidate.scrapes.keys()
    if both:
        name = dict(min(both)).get("instance", "one exporter")
        raise QuestionError(
            f"--baseline and --candidate both select {name}",
            "name labels that tell the two sides apart",
        )
    window = Window(start, warmup, start if ready else -math.inf)
    jobs = baseline.jobs | candidate.jobs
    return _side(baseline, window, jobs), _side(candidate, window, jobs)


def from_scrapes(
    baseline: Sequence[Sequence[str]], candidate: Sequence[Sequence[str]], warmup: float
) -> Sides:
    """Read two scrapes for each exporter of both sides: when it was ready, and at the end.

    Args:
        baseline: pairs of paths or addresses.
        candidate: likewise.
        warmup: 0: processes that started between the two scrapes count as well.

    Raises:
        QuestionError: a file is not there.
        SourceError: a file or an answer is no scrape.
    """
    window = Window(warmup=warmup, ready=0.0)
    return _saved_side(baseline, window), _saved_side(candidate, window)


def _side(found: Found, window: Window, jobs: set[str]) -> Side:
    # Other targets of the same pods, such as the server's own metrics, are of no concern.
    down = sorted(
        name
        for target, name in found.down.items()
        if not jobs or dict(target).get("job", "") in jobs
    )
    return side_of(found.scrapes.values(), window, tuple(down))


def _saved_side(pairs: Sequence[Sequence[str]], window: Window) -> Side:
    # Whatever starts between the two scrapes has no time to warm up: hence times 0 and 1.
    return side_of(
        [
            [Timed(float(moment), saved.read(source)) for moment, source in enumerate(pair)]
            for pair in pairs
        ],
        window,
    )
