"""The mode and the other variables: what is in force, what contradicts, what is ignored."""

from __future__ import annotations

from ..config import ServerSettings, Track
from .finding import Finding, ok, problem, warning
from .machine import Machine


def check(machine: Machine) -> tuple[Finding, ...]:
    """Judge what a server would be told."""
    settings = ServerSettings.from_environ(machine.environ)
    complaints = [
        warning("variables", complaint.what, complaint.next_step)
        for complaint in settings.complaints
    ]
    fine = [] if complaints else [ok("variables", "none is ignored, none contradicts another")]
    return (_mode(settings), *complaints, *fine)


def _mode(settings: ServerSettings) -> Finding:
    if settings.mode_error is not None or settings.mode is None:
        error = settings.mode_error
        what = error.what if error else "unknown mode"
        return problem(
            "mode",
            f"{what}, and an armed server refuses the NPU",
            error.next_step if error else "set NPU_FALLBACK_MODE",
        )
    source = settings.mode_source.name
    said = "the default" if source == "DEFAULT" else f"from {source}"
    tracked = "" if settings.track is Track.ALL else "; NPU_FALLBACK_TRACK=fallbacks"
    return ok("mode", f"{settings.mode.name.lower()}, {said}{tracked}")
