"""The dashboard: what is checked in, what it looks like on paper, and that each query has data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from tests.fleet.replay import Replay, replayed
from tests.support.grafana_board import BOARD, FILE, PANELS, VARIABLES, filled_in
from tests.support.prometheus_process import ask, needs_prometheus
from tests.support.promql import recorded, rules, selectors, unknown

QUERIES = {
    f"{panel['title']} {target['refId']}": target["expr"]
    for panel in PANELS
    for target in panel["targets"]
}


# It speaks of version 2 of the format, which older versions of Grafana do not import.
@pytest.mark.filterwarnings("ignore:Prefer using dashboardv2:DeprecationWarning")
def test_the_file_is_what_the_code_makes() -> None:
    from deploy.grafana.dashboard import render

    assert FILE.read_text(encoding="utf-8") == render(), (
        "run: python -m deploy.grafana.dashboard > deploy/grafana/npu-fallbacks.json"
    )


def test_rows_are_those_that_people_look_for() -> None:
    titles = [one["title"] for one in BOARD["panels"] if one["type"] == "row"]
    assert titles == [
        *("Verdict", "Top operators", "NPU, CPU and fallbacks", "Transfers", "Waits", "Workers"),
        *("Canary", "Exporters"),
    ]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_in_which_unit_from_where(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"]
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert all(one == {"type": "prometheus", "uid": "${datasource}"} for one in sources)


def test_panels_do_not_overlap_and_fit_the_width() -> None:
    cells = [one["gridPos"] for one in BOARD["panels"]]
    assert all(one["x"] >= 0 and one["x"] + one["w"] <= 24 for one in cells)
    for one, other in combinations(cells, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_panels_have_an_identity_and_a_title_of_their_own() -> None:
    for name in ("id", "title"):
        values = [one[name] for one in BOARD["panels"]]
        assert len(set(values)) == len(values)


def test_variables_are_used_and_what_is_used_is_a_variable() -> None:
    text = json.dumps([BOARD["panels"], BOARD["templating"]])
    used = set(re.findall(r"\$\{?(\w+)", text)) - {"__all"}
    assert used == set(VARIABLES)


def test_queries_ask_only_for_what_is_exported_or_recorded() -> None:
    wrong = {name: unknown(filled_in(expression)) for name, expression in QUERIES.items()}
    assert not {name: found for name, found in wrong.items() if found}


def test_panels_of_whole_workloads_need_nothing_but_recorded_series() -> None:
    row = ""
    others: dict[str, set[str]] = {}
    for one in BOARD["panels"]:
        if one["type"] == "row":
            row = one["title"]
            continue
        names = {asked.name for t in one["targets"] for asked in selectors(filled_in(t["expr"]))}
        if not names <= recorded() | {"ALERTS"} or any(n.startswith("node_npu:") for n in names):
            others.setdefault(row, set()).add(one["title"])
    assert others.pop("NPU, CPU and fallbacks") == {"AI cores by chip", "Fallbacks by chip"}
    assert set(others) == {"Workers", "Canary", "Exporters"}


def test_every_recorded_series_is_used_by_a_panel_an_alert_or_another_rule() -> None:
    expressions = [filled_in(expression) for expression in QUERIES.values()]
    expressions += [
        rule["expr"] for file in ("recording.yml", "alerts.yml") for rule in rules(file)
    ]
    used = {asked.name for expression in expressions for asked in selectors(expression)}
    assert not recorded() - used


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    with replayed(tmp_path_factory.mktemp("replay")) as running:
        yield running


@needs_prometheus
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_numbers_from_the_recorded_fleet(replay: Replay, name: str) -> None:
    data = ask(
        replay.address,
        "query_range",
        query=filled_in(QUERIES[name]),
        start=str(replay.start),
        end=str(replay.end),
        step="30",
    )
    numbers = [float(value) for row in data["result"] for _, value in row["values"]]
    assert any(number == number for number in numbers), "nothing, or NaN"


@needs_prometheus
@pytest.mark.parametrize("name", [name for name in VARIABLES if name != "datasource"])
def test_a_variable_offers_what_the_recorded_fleet_has(replay: Replay, name: str) -> None:
    query = filled_in(VARIABLES[name]["query"]["query"])
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    assert found is not None
    times = {"start": str(replay.start), "end": str(replay.end)}
    offered = ask(replay.address, f"label/{found[2]}/values", **{"match[]": found[1]}, **times)
    assert (
        offered
        == {
            "namespace": ["inference"],
            "workload": ["chat"],
            "npu": ["0", "1"],
            "baseline": ["7f9c", "84d1"],
            "candidate": ["7f9c", "84d1"],
        }[name]
    )


@needs_prometheus
def test_the_recorded_fleet_shows_what_was_done_to_it(replay: Replay) -> None:
    def at(minute: float, query: str) -> list[dict[str, Any]]:
        time = str(replay.start + 60 * minute)
        rows: list[dict[str, Any]] = ask(
            replay.address, "query", query=filled_in(QUERIES[query]), time=time
        )["result"]
        return rows

    def share(minute: float) -> float:
        (row,) = at(minute, "Time in fallbacks A")
        return float(row["value"][1])

    # See SCRIPT in tests/fleet/record.py.
    assert share(7) < 0.05 < 0.2 < share(14)
    assert share(27) < 0.05
    assert {row["metric"]["op"] for row in at(7, "New in the candidate A")} == {"aten::lgamma.out"}
    assert at(14, "New in the candidate A") == []
    assert {row["metric"]["op"] for row in at(27, "Refused and failed A")} == {"aten::hypot.out"}
