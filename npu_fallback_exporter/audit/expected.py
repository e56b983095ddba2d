"""Which operators were expected: the allow-list and the baseline, and what fails a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..op_names import checked_globs
from .errors import AuditError, unknown
from .findings import Audit, Standing

_FORMAT = 1


def with_standings(audit: Audit, allowed: Sequence[str], baseline: frozenset[str]) -> Audit:
    """Say of each finding whether it is allowed, or was there before, or is new.

    Args:
        audit: the findings.
        allowed: globs over full overload names.
        baseline: full overload names.
    """

    def standing(op: str) -> Standing:
        if any(fnmatchcase(op, glob) for glob in allowed):
            return Standing.ALLOWED
        return Standing.IN_BASELINE if op in baseline else Standing.NEW

    findings = tuple(replace(one, standing=standing(one.op)) for one in audit.findings)
    return replace(audit, findings=findings)


def failing(audit: Audit, fail_on: str | None) -> tuple[str, ...]:
    """Return the operators that fail the run.

    Args:
        audit: with standings.
        fail_on: ``new``: those that are neither allowed nor in the baseline; ``any``: those that
            are not allowed; None: nothing fails. What only may fall back never fails.
    """
    fails = {
        "any": {Standing.NEW, Standing.IN_BASELINE},
        "new": {Standing.NEW},
        None: set[Standing](),
    }[fail_on]
    return tuple(one.op for one in audit.findings if one.fails and one.standing in fails)


def allow_globs(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the globs of an allow-list.

    Args:
        names: globs, operators or Python names; each may be a list with commas.
        known: the operators that there are; a name of their namespaces must match one.

    Raises:
        AuditError: a name matches no operator that there is.
    """
    operators = sorted(known)
    namespaces = {op.partition("::")[0] for op in operators}
    found: list[str] = []
    for name in (part for text in names for part in text.split(",") if part.strip()):
        try:
            globs = checked_globs(name, "--allow")
        except Exception as error:  # a ConfigError: the next step is in it
            raise AuditError(*_parts(error)) from error
        if _is_foreign(globs, namespaces) or _matches(globs, operators):
            found.extend(globs)
            continue
        spelled = operators if "::" in name else _python_names(operators)
        raise unknown("operator", name.strip(), spelled, "see --format json for their names")
    return tuple(found)


def read_baseline(path: Path) -> frozenset[str]:
    """Return the operators of a baseline, or of a report in JSON.

    Raises:
        AuditError: there is no such file, or it is neither.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        beside = [str(path.parent / other.name) for other in path.parent.glob("*")]
        raise unknown(
            "baseline", str(path), beside, "make it with --write-baseline, or leave --baseline out"
        ) from error
    except (OSError, ValueError) as error:
        raise AuditError(f"baseline {path} cannot be read ({error})", "make a new one") from error
    operators = content.get("ops") if isinstance(content, dict) else None
    if isinstance(content, dict) and isinstance(content.get("findings"), list):
        operators = [one.get("op") for one in content["findings"] if isinstance(one, dict)]
    if not isinstance(operators, list) or not all(isinstance(op, str) for op in operators):
        raise AuditError(f"{path} is no baseline", "make one with --write-baseline")
    return frozenset(operators)


def write_baseline(path: Path, audit: Audit) -> None:
    """Write the operators that surely fall back now as a baseline.

    Raises:
        AuditError: the file cannot be written.
    """
    content = {
        "format": _FORMAT,
        "torch_npu": audit.torch_npu,
        "ops": sorted(one.op for one in audit.findings if one.fails),
    }
    try:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise AuditError(
            f"baseline {path} cannot be written ({error})", "choose another"
        ) from error


def _parts(error: Exception) -> tuple[str, str]:
    return (getattr(error, "what", str(error)), getattr(error, "next_step", "see --help"))


def _is_foreign(globs: Sequence[str], namespaces: set[str]) -> bool:
    return any("::" in glob and glob.partition("::")[0] not in namespaces for glob in globs)


def _matches(globs: Sequence[str], operators: Sequence[str]) -> bool:
    return any(fnmatchcase(op, glob) for glob in globs for op in operators)


def _python_names(operators: Sequence[str]) -> list[str]:
    bases = {op.removeprefix("aten::").partition(".")[0] for op in operators}
    return [f"torch.{base}" for base in sorted(bases)]
