"""Draws the dashboard into a PNG: data from Prometheus, components from npm, headless Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.fleet.replay import Replay
from tests.support.grafana_board import BOARD, CHOICE, PANELS, filled_in
from tests.support.prometheus_process import ask

HERE = Path(__file__).parent
#: What the page needs to be as wide, in pixels, and rows of the grid to be as high; see render.jsx.
WIDTH = 1608
_ROW_HEIGHT = 38
_HEADER = 56

#: As root in a container, without its own network chatter.
_CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=15000",
)


def what_is_missing() -> str:
    """Return what cannot be run here, if anything."""
    return ", ".join(name for name in ("npm", "chromium") if shutil.which(name) is None)


def draw(replay: Replay, png: Path) -> str:
    """Draw the dashboard; returns the page as the browser has it.

    Args:
        replay: who answers the queries.
        png: where the picture goes; its folder is also used for what is needed on the way.
    """
    picture = {
        "board": BOARD,
        "chosen": {name: "All" if value == ".+" else value for name, value in CHOICE.items()},
        "start": replay.start,
        "end": replay.end,
        "answers": {
            panel["id"]: {target["refId"]: _answer(replay, target) for target in panel["targets"]}
            for panel in PANELS
        },
    }
    page = png.with_suffix(".html")
    # In a script element, "</" would end it.
    data = json.dumps(picture).replace("</", "<\\/")
    script = _bundle(png.parent)
    page.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<link rel="stylesheet" href="{script.with_suffix(".css").name}">'
        '<body><div id="root"></div>'
        f"<script>window.PICTURE = {data}</script>"
        f'<script src="{script.name}"></script></body></html>',
        encoding="utf-8",
    )
    height = _HEADER + _ROW_HEIGHT * max(
        panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in BOARD["panels"]
    )
    chromium = ["chromium", *_CHROMIUM_FLAGS, f"--user-data-dir={png.parent / 'chromium'}"]
    _run([*chromium, f"--window-size={WIDTH},{height}", f"--screenshot={png}", page.as_uri()])
    return _run([*chromium, "--dump-dom", page.as_uri()])


def _run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _answer(replay: Replay, target: dict[str, Any]) -> list[dict[str, Any]]:
    # An instant query is one at the end, as a table wants it.
    start = replay.end if target.get("instant") else replay.start
    times = {"start": str(start), "end": str(replay.end), "step": "30"}
    query = filled_in(target["expr"])
    rows: list[dict[str, Any]] = ask(replay.address, "query_range", query=query, **times)["result"]
    return rows


def _bundle(folder: Path) -> Path:
    """Make one script of render.jsx with everything that it uses."""
    for name in ("package.json", "render.jsx", "scrollbars.cjs"):
        shutil.copy(HERE / name, folder / name)
    _run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
    bundle = folder / "render.js"
    _run(
        [
            str(folder / "node_modules" / ".bin" / "esbuild"),
            "render.jsx",
            "--bundle",
            "--minify",
            "--alias:react-custom-scrollbars-2=./scrollbars.cjs",
            "--loader:.svg=dataurl",
            "--loader:.ttf=dataurl",
            '--define:process.env.NODE_ENV="production"',
            f"--outfile={bundle}",
        ],
        folder,
    )
    return bundle
