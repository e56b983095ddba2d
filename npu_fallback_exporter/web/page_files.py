"""The page for people who open the exporter in a browser: files that never change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("page")
_DEFAULT_LANGUAGE = "en"
_LANGUAGES = (_DEFAULT_LANGUAGE, "zh")

#: The page runs its own script and asks its own server; whatever else gets into it does nothing.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)


@dataclass(frozen=True)
class PageFile:
    """One file, and what it is."""

    content_type: str
    body: bytes


@cache
def page_file(name: str) -> PageFile:
    """Return one of the files of the page: ``page.css``, ``page.js``, ``runbook.html``."""
    kinds = {".css": "text/css", ".js": "text/javascript", ".html": "text/html"}
    path = _FOLDER / name
    return PageFile(f"{kinds[path.suffix]}; charset=utf-8", path.read_bytes())


def index(accept_language: str) -> PageFile:
    """Return the page, marked with the language that its reader prefers.

    Args:
        accept_language: value of the header Accept-Language; empty: none was sent.
    """
    page = page_file("index.html")
    marked = f'<html lang="{preferred_language(accept_language)}">'.encode()
    return PageFile(
        page.content_type,
        page.body.replace(f'<html lang="{_DEFAULT_LANGUAGE}">'.encode(), marked, 1),
    )


def preferred_language(accept_language: str) -> str:
    """Return the language of the page that the header prefers; the first of equals."""
    best, best_weight = _DEFAULT_LANGUAGE, 0.0
    for item in accept_language.split(","):
        tag, *parameters = (part.strip().lower() for part in item.split(";"))
        language = tag.partition("-")[0]
        weight = _weight(parameters)
        if language in _LANGUAGES and weight > best_weight:
            best, best_weight = language, weight
    return best


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
