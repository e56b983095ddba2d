"""The dashboard, as code.

``python -m deploy.grafana.dashboard > deploy/grafana/npu-fallbacks.json`` writes it.
"""

from __future__ import annotations

import json

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from .fleet import CANARY, EXPORTERS, WORKERS
from .layout import add
from .service import OPERATORS, TRANSFERS, UTILIZATION, VERDICT, WAITS
from .variables import variables

ROWS = (VERDICT, OPERATORS, UTILIZATION, TRANSFERS, WAITS, WORKERS, CANARY, EXPORTERS)


def render() -> str:
    """Return the dashboard as Grafana imports it, ending in a newline."""
    board = (
        dashboard.Dashboard("NPU fallbacks")
        .uid("npu-fallbacks")
        .description("Operators that run on the host CPU instead of the Ascend NPU.")
        .tags(["npu", "ascend", "pytorch"])
        .time("now-1h", "now")
        .timezone("browser")
        .refresh("30s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
    )
    for variable in variables():
        board.with_variable(variable)
    add(board, ROWS)
    return json.dumps(board.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
