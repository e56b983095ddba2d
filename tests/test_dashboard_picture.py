"""The dashboard as people see it, drawn by Grafana's own components. Installs 450 MB from npm."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from tests.dashboard_picture.draw import WIDTH, draw, what_is_missing
from tests.fleet.replay import replayed
from tests.support.grafana_board import PANELS
from tests.support.prometheus_process import needs_prometheus

PICTURE = Path(__file__).parents[1] / "docs" / "dashboard.png"

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(900),
    needs_prometheus,
    pytest.mark.skipif(bool(what_is_missing()), reason=f"missing: {what_is_missing()}"),
]


#: At the end of the recording the baseline has fallen back on every operator of the candidate.
EMPTY = ("New in the candidate",)


def test_the_picture_in_the_readme_can_be_drawn_with_something_in_every_panel(
    tmp_path: Path,
) -> None:
    drawn = tmp_path / PICTURE.name
    (tmp_path / "replay").mkdir()
    with replayed(tmp_path / "replay") as replay:
        page = draw(replay, drawn)
    assert page.count("data-panel=") == len(PANELS)
    assert page.count("No data") == len(EMPTY)
    assert page.count("<canvas") >= sum(panel["type"] == "timeseries" for panel in PANELS)
    width, _ = struct.unpack(">II", drawn.read_bytes()[16:24])
    assert width == WIDTH
    shutil.copy(drawn, PICTURE)  # to be looked at
