"""What differs between the routes of two versions of torch_npu."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .table import Route, RoutingTable

#: Routes on which an operator computes on the host, or fails for want of a kernel.
HOST_ROUTES = (Route.FALLBACK, Route.EXPLICIT, Route.UNSUPPORTED)


@dataclass(frozen=True)
class Change:
    """One operator whose route differs; None: that version does not define it."""

    op: str
    before: Route | None
    after: Route | None


@dataclass(frozen=True)
class Difference:
    """Operators by what a user of the newer version meets.

    Attributes:
        before: version.
        after: version.
        newly_fall_back: now in the fallback, defined before on another route.
        no_longer_fall_back: were in the fallback, now on another route.
        newly_explicit: now an NPU kernel that may compute on the host.
        no_longer_explicit: were such a kernel.
        newly_unsupported: now without a CPU kernel that the fallback could call.
        new: not defined before, and on a route of :data:`HOST_ROUTES`.
        gone: no longer defined, and were on such a route.
    """

    before: str
    after: str
    newly_fall_back: tuple[Change, ...]
    no_longer_fall_back: tuple[Change, ...]
    newly_explicit: tuple[Change, ...]
    no_longer_explicit: tuple[Change, ...]
    newly_unsupported: tuple[Change, ...]
    new: tuple[Change, ...]
    gone: tuple[Change, ...]

    def groups(self) -> Iterator[tuple[str, tuple[Change, ...]]]:
        """Yield the title and the operators of each group, in the order above."""
        yield "newly fall back", self.newly_fall_back
        yield "no longer fall back", self.no_longer_fall_back
        yield "newly compute on the host under a condition", self.newly_explicit
        yield "no longer compute on the host under a condition", self.no_longer_explicit
        yield "newly unsupported", self.newly_unsupported
        yield "new operators that compute on the host or are unsupported", self.new
        yield "no longer defined, of those", self.gone


def difference(before: RoutingTable, after: RoutingTable) -> Difference:
    """Compare two tables."""
    changes = tuple(_changes(before, after))
    both = [change for change in changes if change.before and change.after]

    def now(route: Route) -> tuple[Change, ...]:
        return tuple(change for change in both if change.after is route)

    def earlier(route: Route) -> tuple[Change, ...]:
        return tuple(change for change in both if change.before is route)

    return Difference(
        before.version,
        after.version,
        newly_fall_back=now(Route.FALLBACK),
        no_longer_fall_back=earlier(Route.FALLBACK),
        newly_explicit=now(Route.EXPLICIT),
        no_longer_explicit=earlier(Route.EXPLICIT),
        newly_unsupported=now(Route.UNSUPPORTED),
        new=tuple(c for c in changes if c.before is None and c.after in HOST_ROUTES),
        gone=tuple(c for c in changes if c.after is None and c.before in HOST_ROUTES),
    )


def _changes(before: RoutingTable, after: RoutingTable) -> Iterator[Change]:
    for op in sorted({*before.entries, *after.entries}):
        old, new = before.entries.get(op), after.entries.get(op)
        change = Change(op, old.route if old else None, new.route if new else None)
        if change.before is not change.after:
            yield change
