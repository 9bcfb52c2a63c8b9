"""A thread that runs its jobs one after the other, and that nobody has to wait for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


class Lane:
    """Runs jobs in order on a daemon thread.

    It is not a `ThreadPoolExecutor`, because the interpreter waits for the threads of those before it ends: for ever,
    if one of their jobs is a call into a frozen Java process.

    Args:
        name: the name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._is_closed = False
        run = partial(copy_context().run, self._run)  # so that it logs for the same topology
        self._thread = threading.Thread(target=run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], Result]) -> Future[Result]:
        """Queues a job behind those submitted earlier; on any thread."""
        future: Future[Result] = Future()
        self._jobs.put((future, job))
        return future

    def close(self, timeout_s: float) -> bool:
        """Drops the jobs that have not begun, waits for the one that runs, and returns whether it has ended in time."""
        self._is_closed = True
        self._jobs.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (entry := self._jobs.get()) is not None:
            future, job = entry
            if self._is_closed:
                future.cancel()
                continue
            try:
                result = job()
            except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits for the future
                with suppress(InvalidStateError):  # nobody does any more
                    future.set_exception(error)
            else:
                with suppress(InvalidStateError):
                    future.set_result(result)
            del entry, future, job
