"""Requests to the workers, from one client for each."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from npu_fallback_exporter.demo.errors import DemoError
from npu_fallback_exporter.demo.workers import Service

_REQUEST_SECONDS = 60.0
_TICK_SECONDS = 0.1
_PROMPT_TOKENS = 8
_VOCABULARY = 256


@dataclass(frozen=True)
class Plan:
    """What to send.

    Attributes:
        models: variants of the model, asked in turn by each client.
        new_tokens: tokens to ask for per request.
        requests: stop when so many are answered; ``None``: when ``seconds`` are over.
        seconds: send for so long.
    """

    models: tuple[str, ...]
    new_tokens: int
    requests: int | None = None
    seconds: float = 0.0


@dataclass
class Served:
    """What was answered, by variant of the model."""

    tokens: Counter[str] = field(default_factory=Counter)
    latencies: dict[str, list[float]] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        return sum(map(len, self.latencies.values()))

    def add(self, model: str, tokens: int, seconds: float) -> None:
        """Count one answer."""
        self.tokens[model] += tokens
        self.latencies.setdefault(model, []).append(seconds / tokens)

    def seconds_per_token(self, model: str) -> float:
        """Return the lower quartile of one variant: what else runs disturbs it little."""
        quartile = quantiles(self.latencies[model], n=4, method="inclusive")[0]
        return float(quartile)


@dataclass
class _Shared:
    plan: Plan
    deadline: float
    started: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    served: Served = field(default_factory=Served)
    failure: DemoError | None = None
    stopping: bool = False

    def may_start(self) -> bool:
        with self.lock:
            if self.stopping or self.failure is not None:
                return False
            if self.plan.requests is None:
                return time.monotonic() < self.deadline
            self.started += 1
            return self.started <= self.plan.requests


def send(workers: Sequence[Service], plan: Plan, on_progress: Callable[[Served], None]) -> Served:
    """Carry out the plan, calling ``on_progress`` some times a second.

    Raises:
        DemoError: a request was not answered.
    """
    shared = _Shared(plan, time.monotonic() + plan.seconds)
    clients = [
        threading.Thread(target=_client, args=(worker, shared), daemon=True) for worker in workers
    ]
    for client in clients:
        client.start()
    try:
        for client in clients:
            while client.is_alive():
                client.join(_TICK_SECONDS)
                on_progress(shared.served)
    finally:
        shared.stopping = True
    if shared.failure is not None:
        raise shared.failure
    return shared.served


def _client(worker: Service, shared: _Shared) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=_REQUEST_SECONDS)
    numbers = itertools.count()
    try:
        while shared.may_start():
            number = next(numbers)
            model = shared.plan.models[number % len(shared.plan.models)]
            start = time.monotonic()
            tokens = _ask(connection, worker, model, number, shared.plan.new_tokens)
            with shared.lock:
                shared.served.add(model, tokens, time.monotonic() - start)
    except DemoError as error:
        shared.failure = error
    finally:
        connection.close()


def _ask(
    connection: http.client.HTTPConnection,
    worker: Service,
    model: str,
    number: int,
    new_tokens: int,
) -> int:
    prompt = [(number * 7 + i * 31) % _VOCABULARY for i in range(_PROMPT_TOKENS)]
    body = {"model": model, "prompt": prompt, "new_tokens": new_tokens}
    try:
        connection.request("POST", "/generate", json.dumps(body))
        response = connection.getresponse()
        content = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise worker.failure(f"did not answer: {error or type(error).__name__}") from error
    if response.status != http.HTTPStatus.OK:
        raise worker.failure(f"failed: {content.get('error')}")
    if len(content["tokens"]) != new_tokens:
        raise worker.failure(f"gave {len(content['tokens'])} tokens, not {new_tokens}")
    return new_tokens
