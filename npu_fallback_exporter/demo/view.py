"""The demo's words and tables for a terminal, or plain lines where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from npu_fallback_exporter.demo.expected import ORIGINAL, REWRITTEN, Expected
from npu_fallback_exporter.demo.scrape import Scrape
from npu_fallback_exporter.demo.traffic import Plan, Served
from npu_fallback_exporter.demo.workers import Service
from npu_fallback_exporter.report.units import duration, size

_SHOWN_SERIES = "npu_fallback_events_total{"
_SHOWN_LINES = 4
_WIDTH_OF_A_FILE = 120
_WIDE = 90


class View:
    """Everything that the demo shows."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = _WIDTH_OF_A_FILE

    def say(self, line: str = "") -> None:
        """Show one line; it is not wrapped, so that addresses can be copied."""
        self._console.print(line, markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def progress(self, title: str, plan: Plan) -> Iterator[Callable[[Served], None]]:
        """Show how far the plan is; yields the function to call with what has been served."""
        if not self._console.is_terminal:
            self.say(f"{title} ...")
            yield lambda served: None
            return
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[requests]} requests"),
            TimeElapsedColumn(),
            console=self._console,
        )
        task = bar.add_task(title, total=plan.requests or plan.seconds, requests=0)

        def update(served: Served) -> None:
            done = served.requests if plan.requests else bar.tasks[task].elapsed
            bar.update(task, completed=done, requests=served.requests)

        with bar:
            yield update

    def ops(self, scrape: Scrape) -> None:
        """Show the operators, the most expensive first."""
        gap = 1 if self._console.width < _WIDE else 2
        table = Table(box=None, padding=(0, gap, 0, 0))
        for name in ("operator", "kind"):
            table.add_column(name, overflow="fold")
        for name in ("events", "time", "share", "to host", "to device"):
            table.add_column(name, justify="right")
        whole = sum(row.seconds for row in scrape.rows)
        for row in scrape.rows:
            table.add_row(
                row.op,
                row.kind,
                f"{row.events:,}",
                duration(row.seconds),
                f"{row.seconds / whole:.1%}" if whole else "",
                size(row.bytes_d2h),
                size(row.bytes_h2d),
            )
        self.say()
        self.say("These operators ran on the host CPU:")
        self.say()
        self._console.print(table)
        self.say()

    def comparison(self, scrape: Scrape, expected: Expected) -> bool:
        """Say whether the scrape has exactly the events that the model must cause."""
        exact = scrape.total == expected.total
        verdict = "exactly as many" if exact else f"not {expected.total:,}: this is a defect"
        self.say(f"The model must cause {expected.told()} events.")
        self.say(f"The scrape has {scrape.total:,}, {verdict}.")
        return exact

    def cost(self, served: Served) -> None:
        """Say what the fallback costs, as measured."""
        with_it, without = (
            served.seconds_per_token(model) * 1e3 for model in (ORIGINAL, REWRITTEN)
        )
        requests = min(map(len, served.latencies.values()))
        self.say(
            f"What it costs: {with_it:.2f} ms per token; "
            f"{without:.2f} ms when the model is rewritten without it."
        )
        self.say(f"(Lower quartiles of {requests} requests each, by turns.)")

    def next_steps(self, scrape: Scrape, exporter: Service, *, kept: bool) -> None:
        """Show where the numbers come from, and what to do now."""
        self.say()
        self.say(f"From the scrape of http://127.0.0.1:{exporter.port}/metrics:")
        lines = [line for line in scrape.text.splitlines() if line.startswith(_SHOWN_SERIES)]
        for line in lines[:_SHOWN_LINES]:
            self.say(f"  {line}")
        self.say()
        if kept:
            self.say(f"The same as a page: http://127.0.0.1:{exporter.port}/")
            self.say("Server and exporter keep running. Ctrl-C ends them.")
        else:
            self.say("demo --keep leaves server and exporter running, to look around.")
        self.say("Your own server: npu-fallback-exporter run -- python your_server.py")
