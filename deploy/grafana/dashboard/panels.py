"""How a panel is made: every one has a title, a description, a unit and its queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

Panel = stat.Panel | table.Panel | timeseries.Panel

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")

#: What the variables choose.
CHOSEN = 'namespace=~"$namespace",workload=~"$workload"'

#: Units as Grafana names them.
SHARE = "percentunit"
SECONDS = "s"
BYTES = "bytes"
BYTES_PER_SECOND = "binBps"
PER_SECOND = "cps"
NUMBER = "short"


@dataclass(frozen=True)
class Query:
    """One query and what its series are called; ``{{label}}`` stands for a label."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Limits:
    """From where on a value is worth a look, and from where on it is bad."""

    look: float
    bad: float


def number(
    title: str, description: str, expression: str, unit: str, limits: Limits | None = None
) -> stat.Panel:
    """Show one number of now, with its course behind it."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value("no data")
        .graph_mode(common_models.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_target(Query(expression, title), "A"))
    )
    steps = [models.Threshold(value=None, color="green")]
    if limits is None:
        steps = [models.Threshold(value=None, color="blue")]
    else:
        steps.append(models.Threshold(value=limits.look, color="orange"))
        steps.append(models.Threshold(value=limits.bad, color="red"))
    return panel.thresholds(
        dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)
    )


def curves(
    title: str,
    description: str,
    queries: Sequence[Query],
    unit: str,
    *,
    stacked: bool = False,
    right_axis: dict[str, str] | None = None,
    top: float | None = None,
) -> timeseries.Panel:
    """Show curves over time.

    Args:
        title: says what is shown.
        description: says what it tells, and what not.
        queries: in the order of the legend.
        unit: of the left axis.
        stacked: on top of each other, where their sum means something.
        right_axis: units of the curves that have an axis of their own, by their name.
        top: upper end of the left axis, where it has one by nature.
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .min(0)
        .line_width(2)
        .fill_opacity(25 if stacked else 8)
        .show_points(common_models.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
    )
    if top is not None:
        panel.max(top)
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    for curve, its_unit in (right_axis or {}).items():
        panel.override_by_name(
            curve,
            [
                models.DynamicConfigValue("unit", its_unit),
                models.DynamicConfigValue("custom.axisPlacement", "right"),
                models.DynamicConfigValue("custom.fillOpacity", 0),
                models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [6, 4]}),
            ],
        )
    for letter, query in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(_target(query, letter))
    return panel


def ranking(
    title: str, description: str, columns: Sequence[tuple[Query, str]], keys: Sequence[str]
) -> table.Panel:
    """Tell how things are now: a row for each combination of ``keys``, by the first column.

    Args:
        title: says what is shown.
        description: says what it tells, and what not.
        columns: each with its unit; the legend is its heading.
        keys: labels that make a row.
    """
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(NUMBER)
        .min_width(_NARROW)
        .override_by_name(keys[0], [models.DynamicConfigValue("custom.minWidth", _WIDE)])
    )
    names: dict[str, str] = {}
    order = {key: place for place, key in enumerate(keys)}
    for place, (letter, (query, unit)) in enumerate(zip("ABCDEFGH", columns, strict=False)):
        panel.with_target(_target(query, letter).instant().format(_TABLE))
        panel.override_by_name(query.legend, [models.DynamicConfigValue("unit", unit)])
        names[f"Value #{letter}"] = query.legend
        order[f"Value #{letter}"] = len(keys) + place
    organize = {"excludeByName": {"Time": True}, "renameByName": names, "indexByName": order}
    return (
        panel.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(models.DataTransformerConfig(id_val="organize", options=organize))
        .sort_by([common.TableSortByFieldState().display_name(columns[0][0].legend).desc(True)])
    )


#: Least widths of columns in pixels: of numbers, and of names of operators.
_NARROW = 90
_WIDE = 190

_TABLE = prometheus_models.PromQueryFormat.TABLE


def _target(query: Query, letter: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(letter)
        .expr(query.expression)
        .legend_format(query.legend)
        .datasource(DATASOURCE)
        .editor_mode(prometheus_models.QueryEditorMode.CODE)
    )
