"""One run of something slow, shared by all who want its result meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")


class SingleFlight(Generic[_Result]):
    """Runs `work` in a thread of its own, at most once at a time.

    Whoever asks while it runs gets the result of that run. The thread is a daemon: work that hangs
    can keep neither the event loop nor the end of the process.
    """

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        self._running: asyncio.Future[_Result] | None = None

    async def result(self) -> _Result:
        """Return the result of the run that goes on, or of a new one.

        Raises:
            Exception: what `work` raised.
        """
        if self._running is None:
            self._running = self._start()
        # Whoever stops waiting must not cancel the run for the others.
        return await asyncio.shield(self._running)

    def _start(self) -> asyncio.Future[_Result]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()

        def finish(result: _Result | None, error: Exception | None) -> None:
            self._running = None
            if error is not None:
                future.set_exception(error)
                future.exception()  # the run may have lost all who waited
            else:
                future.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, error = None, None
            try:
                result = self._work()
            except Exception as raised:
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop was closed while this ran
                loop.call_soon_threadsafe(finish, result, error)

        threading.Thread(target=run, name="collect", daemon=True).start()
        return future
