"""``python -m npu_fallback_exporter.web.runbook docs/runbook.md`` writes ``page/runbook.html``.

The page links to it, so that it can be read where there is no internet. It knows as much Markdown
as the runbook uses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

PAGE = Path(__file__).with_name("page") / "runbook.html"

_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runbook</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
</head>
<body>
<p><a href="./">NPU fallbacks</a></p>
<article>
"""
_TAIL = "</article>\n</body>\n</html>\n"
_CODE, _LINK = re.compile(r"`([^`]+)`"), re.compile(r"\[([^]]+)\]\(([^)]+)\)")
_BOLD, _ITALIC = re.compile(r"\*\*(.+?)\*\*"), re.compile(r"\*(.+?)\*")
_NUMBERED = re.compile(r"\d+\. ")


def render(markdown: str) -> str:
    """Return the runbook as HTML."""
    return _HEAD + "\n".join(_blocks(markdown)) + "\n" + _TAIL


def anchor(heading: str) -> str:
    """Return the id of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _blocks(markdown: str) -> Iterator[str]:
    for block in re.split(r"\n{2,}(?=\S)", markdown.strip()):
        lines = block.split("\n")
        first = lines[0]
        if first.startswith("#"):
            marks, _, text = first.partition(" ")
            yield f'<h{len(marks)} id="{anchor(text)}">{_inline(text)}</h{len(marks)}>'
        elif first.startswith("```"):
            yield f"<pre><code>{escape(chr(10).join(lines[1:-1]))}</code></pre>"
        elif first.startswith("|"):
            yield _table(lines)
        elif _NUMBERED.match(first):
            items = re.split(r"\n(?=\d+\. )", block)
            texts = (_NUMBERED.sub("", " ".join(item.split()), count=1) for item in items)
            yield f"<ol>{''.join(f'<li>{_inline(text)}</li>' for text in texts)}</ol>"
        else:
            yield f"<p>{_inline(' '.join(lines))}</p>"


def _table(lines: list[str]) -> str:
    head, _, *rows = (
        [_inline(cell.strip()) for cell in line.strip("|").split("|")] for line in lines
    )
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="cards"><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table>'


def _inline(text: str) -> str:
    # Every second part is code, in which nothing else means anything.
    parts = _CODE.split(escape(text, quote=False))
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    parts[::2] = [_emphasis(part) for part in parts[::2]]
    return _LINK.sub(_link, "".join(parts))


def _emphasis(text: str) -> str:
    return _ITALIC.sub(r"<em>\1</em>", _BOLD.sub(r"<strong>\1</strong>", text))


def _link(match: re.Match[str]) -> str:
    text, target = match.groups()
    # The other documents are not here.
    return f'<a href="{target}">{text}</a>' if target.startswith("#") else f"<em>{text}</em>"


if __name__ == "__main__":
    PAGE.write_text(render(Path(sys.argv[1]).read_text(encoding="utf-8")), encoding="utf-8")
