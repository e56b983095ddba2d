"""Scrapes as Prometheus keeps them: the raw samples of the window, not functions of them."""

from __future__ import annotations

import base64
import json
import math
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import QuestionError, SourceError
from .readings import READ, SPECS, Counter, counter_of
from .traffic import Timed

_TIMEOUT_SECONDS = 60.0
_BAD_REQUESTS = (400, 422)

#: An exporter: the labels of its target.
Target = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Access:
    """How to be let in.

    Attributes:
        bearer_token_file: file with a token.
        basic_auth_file: file with ``user:password``.
        ca_file: certificates to trust instead of the system's.
    """

    bearer_token_file: Path | None = None
    basic_auth_file: Path | None = None
    ca_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """Headers for a request."""
        if self.bearer_token_file:
            return {"Authorization": f"Bearer {_secret(self.bearer_token_file)}"}
        if self.basic_auth_file:
            encoded = base64.b64encode(_secret(self.basic_auth_file).encode()).decode()
            return {"Authorization": f"Basic {encoded}"}
        return {}

    def tls(self) -> ssl.SSLContext | None:
        """Return the settings of an https connection; None: the system's."""
        if not self.ca_file:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise QuestionError(
                f"cannot use {self.ca_file} as certificates: {error}", "name a PEM file"
            ) from error


@dataclass(frozen=True)
class Found:
    """What Prometheus has of one side.

    Attributes:
        scrapes: by exporter, oldest first.
        down: exporters that it could not reach at the end.
    """

    scrapes: dict[Target, list[Timed]]
    down: dict[Target, str] = field(default_factory=dict)

    @property
    def jobs(self) -> set[str]:
        """Jobs of the exporters."""
        return {dict(target).get("job", "") for target in self.scrapes}


class Prometheus:
    """A Prometheus, or anything that answers its query API.

    Args:
        url: its address, with a path in front of ``/api/v1`` if it has one.
        access: how to be let in.
    """

    def __init__(self, url: str, access: Access | None = None) -> None:
        self._url = url.rstrip("/")
        self._access = access or Access()

    def find(self, selector: str, start: float, end: float) -> Found:
        """Read one side between two Unix times.

        Args:
            selector: label matchers, such as ``namespace="llm",pod=~"api-canary-.*"``.
            start: of the samples wanted.
            end: of the samples wanted.

        Raises:
            QuestionError: the selector is wrong.
            SourceError: there is no answer.
        """
        matchers = selector.strip().removeprefix("{").removesuffix("}").strip().rstrip(",")
        if not matchers:
            raise QuestionError("an empty selector selects everything", "name labels of one side")
        names = "|".join(READ)
        seconds = max(1, math.ceil(end - start))
        series = self._query(f'{{__name__=~"{names}",{matchers}}}[{seconds}s]', end)
        down = self._query(f"up{{{matchers}}} == 0", end)
        return Found(
            _scrapes(series),
            {_target(row["metric"], ()): row["metric"].get("instance", "?") for row in down},
        )

    def _query(self, query: str, time: float) -> list[dict[str, Any]]:
        body = urllib.parse.urlencode({"query": query, "time": f"{time:.3f}"}).encode()
        request = urllib.request.Request(  # noqa: S310 - the command line takes http and https only
            f"{self._url}/api/v1/query", body, self._access.headers()
        )
        try:
            with urllib.request.urlopen(  # nosec B310 # noqa: S310
                request, timeout=_TIMEOUT_SECONDS, context=self._access.tls()
            ) as reply:
                rows: list[dict[str, Any]] = json.load(reply)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise self._refused(error) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = getattr(error, "reason", None) or error
            raise SourceError(
                f"no answer from Prometheus at {self._url} ({' '.join(str(reason).split())})",
                "check the address and that it runs",
            ) from error
        return rows

    def _refused(self, error: urllib.error.HTTPError) -> Exception:
        try:
            text = str(json.load(error)["error"])
        except (OSError, ValueError, KeyError, TypeError):
            text = str(error.reason)
        said = f"Prometheus at {self._url} says {error.code}: {' '.join(text.split())}"
        if error.code in _BAD_REQUESTS:
            return QuestionError(said, "check --baseline and --candidate")
        return SourceError(said, "check the address and how you are let in")


def _scrapes(series: Iterable[Mapping[str, Any]]) -> dict[Target, list[Timed]]:
    found: dict[Target, dict[float, dict[Counter, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in series:
        labels = row["metric"]
        name = labels["__name__"]
        key = counter_of(name, labels)
        moments = found[_target(labels, SPECS[name].labels)]
        # Labels that are summed over share the moments of their scrapes.
        for moment, value in row["values"]:
            values = moments[float(moment)]
            values[key] = values.get(key, 0.0) + float(value)
    return {
        target: [Timed(moment, values) for moment, values in sorted(moments.items())]
        for target, moments in found.items()
    }


def _target(labels: Mapping[str, str], own: Iterable[str]) -> Target:
    without = {"__name__", *own}
    return tuple(sorted((name, text) for name, text in labels.items() if name not in without))


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise QuestionError(f"cannot read {path}: {error}", "name a readable file") from error
