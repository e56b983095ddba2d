"""One worker of a small inference server: ``python -m npu_fallback_exporter.demo.server``.

It serves two variants of a language model on one NPU over HTTP, one request at a time. It knows
nothing of counting: that comes with the environment that it is started in.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
import torch_npu

from npu_fallback_exporter.demo.model import Decoder, DecoderConfig

READY = "ready on port "

CONFIG = DecoderConfig(vocabulary=4096)


class ModelServer(ThreadingHTTPServer):
    """Holds the models; a lock lets one request at a time use the device."""

    daemon_threads = True

    def __init__(self, device: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.device = f"npu:{device}"
        self.lock = threading.Lock()
        self.models = {
            "original": Decoder(fallback_op=True, config=CONFIG).load(self.device),
            "rewritten": Decoder(fallback_op=False, config=CONFIG).load(self.device),
        }

    def generate(self, model: str, prompt: list[int], new_tokens: int) -> list[int]:
        """Continue the prompt by the most likely tokens."""
        tokens = torch.tensor([prompt], device=self.device)
        with self.lock:
            produced: list[int] = self.models[model].generate(tokens, new_tokens)[0].tolist()
        return produced


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ModelServer

    def do_GET(self) -> None:
        """Answer the health check."""
        self._answer(200, {"device": self.server.device})

    def do_POST(self) -> None:
        """Answer ``{"model", "prompt", "new_tokens"}`` with ``{"tokens"}``."""
        try:
            length = int(self.headers.get("Content-Length", "0"))
            wanted = json.loads(self.rfile.read(length))
            tokens = self.server.generate(wanted["model"], wanted["prompt"], wanted["new_tokens"])
        except Exception as error:  # the next request may be a better one
            self._answer(500, {"error": f"{type(error).__name__}: {error}"})
        else:
            self._answer(200, {"tokens": tokens})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests that went well."""


def main() -> None:
    """Serve until SIGTERM; the first line on stdout tells the port."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, required=True)
    device = parser.parse_args().device
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    torch_npu.npu.set_device(device)
    with ModelServer(device) as server:
        print(f"{READY}{server.server_port}", flush=True)  # noqa: T201 - a program of its own
        server.serve_forever()


if __name__ == "__main__":
    main()
