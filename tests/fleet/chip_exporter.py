"""Stands in for Huawei's npu-exporter, which shows the chips of a node where npu-smi is not called.

Names, labels and the unit (percent) are those of its sources: ``github.com/Ascend/mind-cluster``,
``component/npu-exporter/collector``.
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_LABELS = (
    'model_name="910B3",vdie_id="",pcie_bus_info="",namespace="",pod_name="",container_name=""'
)


class ChipExporter(ThreadingHTTPServer):
    """Serves the utilization of one node's chips; ``busy`` is it by chip, in percent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.busy: dict[int, int] = {}

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_port}"

    def text(self) -> str:
        """Return what a scrape gets."""
        name = "npu_chip_info_utilization"
        samples = [
            f'{name}{{id="{chip}",{_LABELS}}} {busy}\n' for chip, busy in sorted(self.busy.items())
        ]
        return f"# HELP {name} the ai core utilization\n# TYPE {name} gauge\n" + "".join(samples)


class _Handler(BaseHTTPRequestHandler):
    server: ChipExporter

    def do_GET(self) -> None:
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
