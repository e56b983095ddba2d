"""All checks, in the order in which a reader should mend what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import (
    devices,
    exporter_port,
    hook_files,
    host_math,
    pages_folder,
    settings,
    versions,
    ways_in,
)
from .finding import Finding, Group, problem
from .machine import Machine
from .torch_facts import gather


def examine(machine: Machine) -> tuple[Group, ...]:
    """Run every check. Never raises: a check that cannot be made is a problem of its own."""
    facts = gather(machine.environ, machine.torch_seconds)
    checks: Sequence[tuple[str, Callable[[], tuple[Finding, ...]]]] = (
        ("Versions", lambda: versions.check(machine, facts)),
        ("Hook", lambda: hook_files.check(machine, facts)),
        ("Ways into the server", lambda: ways_in.check(machine)),
        ("Settings", lambda: settings.check(machine)),
        ("Pages", lambda: pages_folder.check(machine)),
        ("Devices", lambda: devices.check(machine)),
        ("Host", lambda: host_math.check(machine, facts)),
        ("Exporter", lambda: exporter_port.check(machine)),
    )
    return tuple(Group(title, _guarded(title, check)) for title, check in checks)


def _guarded(title: str, check: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    try:
        return check()
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        text = f"cannot be examined:{where} {error.strerror or error}"
        return (problem(title.lower(), text, "run doctor as the server's user"),)
    except Exception as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        return (problem(title.lower(), f"cannot be examined: {line}", "please report this line"),)
