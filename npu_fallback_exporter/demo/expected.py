"""How many fallback events the model must cause, from what it was asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from npu_fallback_exporter.demo.traffic import Served

#: The variants of the model that the server knows, with and without the operators that fall back.
ORIGINAL, REWRITTEN = "original", "rewritten"

#: Of ``Decoder(fallback_op=True)``: see ``model.py``.
EVENTS_AT_LOAD = 1
EVENTS_PER_FORWARD = 1


@dataclass(frozen=True)
class Expected:
    """The events, and where they come from.

    Attributes:
        at_load: of loading the model, in all workers.
        in_forwards: of the forward passes; each gives one token.
    """

    at_load: int
    in_forwards: int

    @property
    def total(self) -> int:
        """All events."""
        return self.at_load + self.in_forwards

    def told(self) -> str:
        """Return the sum for people."""
        return (
            f"{self.at_load:,} (loading) + {self.in_forwards:,} (forward passes) = {self.total:,}"
        )


def expected_events(served: Served, workers: int) -> Expected:
    """Return what ``workers`` loads and the tokens served must cause."""
    return Expected(workers * EVENTS_AT_LOAD, served.tokens[ORIGINAL] * EVENTS_PER_FORWARD)
