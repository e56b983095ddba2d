"""Reports as JSON, versioned: docs/report.md describes the fields, which are those of the model.

What can be computed from the fields is written too, for readers without this package, and ignored
when a report is read again.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from typing import Any

from ..errors import SourceError
from .findings import findings
from .model import OpCost, Report

FORMAT = "npu-fallback-report"
FORMAT_VERSION = 1
_DIGITS = 4


def encode(report: Report) -> bytes:
    """Return the JSON of a report, on one line."""
    return json.dumps(as_json(report), separators=(",", ":"), allow_nan=False).encode()


def as_json(report: Report) -> dict[str, Any]:
    """Return the JSON of a report as Python values."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "findings": [dataclasses.asdict(finding) for finding in findings(report)],
        **_plain(dataclasses.replace(report, ops=(), history=None)),
        "events": report.events,
        "host_seconds": report.host_seconds,
        "share_of_armed_time": report.share(report.host_seconds),
        "ops": [_op(report, op) for op in report.ops],
        "history": None if report.history is None else _rounded(_plain(report.history)),
    }


def is_report(text: str) -> bool:
    """Whether a text is meant to be a report, rather than a scrape."""
    return text.lstrip()[:1] == "{"


def decode(text: str, source: str) -> Report:
    """Read a report. Fields of later versions of this format are ignored.

    Args:
        text: its JSON.
        source: where it comes from, for the error.

    Raises:
        SourceError: it is none, or one of a later format.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _none(source, "not JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _none(source, f"its format is not {FORMAT}")
    if content.get("format_version") != FORMAT_VERSION:
        raise SourceError(
            f"{source} has version {content.get('format_version')!r} of the format, "
            f"not {FORMAT_VERSION}",
            "read it with the release that wrote it",
        )
    try:
        report: Report = _made(Report, content)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _none(source, " ".join(str(error).split())) from error
    return report


def _none(source: str, why: str) -> SourceError:
    return SourceError(
        f"{source} is not a report ({why})", "save one with: report --format json > report.json"
    )


def _op(report: Report, op: OpCost) -> dict[str, Any]:
    return {
        **_plain(op),
        "share_of_armed_time": report.share(op.host_seconds),
        "mean_seconds": op.mean_seconds,
        "per_thousand_operators": report.per_thousand_operators(op.events),
    }


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    if dataclasses.is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return value


def _rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Leave four digits of rates; times keep theirs."""
    if isinstance(value, dict):
        return {key: one if key == "unix" else _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _made(kind: Any, value: Any) -> Any:  # noqa: ANN401 - any type of the model
    """Make a value of a type of the model from JSON. Raises KeyError, TypeError, ValueError."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (one for one in arguments if one is not type(None))
        return None if value is None else _made(inner, value)
    if origin is tuple:
        return tuple(_made(arguments[0], one) for one in _checked(value, list))
    if origin is not None:  # Mapping
        items = _checked(value, dict).items()
        return {_checked(key, str): _made(arguments[1], one) for key, one in items}
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, _checked(value, dict))
    if kind is bool:
        return value is True
    if kind is float:
        return float(_checked(value, (int, float)))
    return _checked(value, kind)


def _dataclass(kind: Any, content: dict[str, Any]) -> Any:  # noqa: ANN401 - any type of the model
    types_ = typing.get_type_hints(kind)
    given = {}
    for one in dataclasses.fields(kind):
        if one.name in content:
            given[one.name] = _made(types_[one.name], content[one.name])
    return kind(**given)


def _checked(value: Any, kind: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{str(value)[:40]!r} where there should be another type")
    return value
