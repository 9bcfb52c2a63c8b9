"""The engine of waves waits no longer than it was asked to, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from coordinator.engines.waves.wave_engine import WaveEngine
from coordinator.transactional.engine import GroupExecuted


class IdleEngine(WaveEngine):
    overlaps = queues = False

    def _wave(self, given: Any) -> Any:
        raise AssertionError("no wave is started")

    def _submit(self, *arguments: Any) -> None:
        raise AssertionError("no wave is started")

    def _crashed(self, name: str, error: BaseException) -> Any:
        raise AssertionError("no wave is started")

    def close(self) -> None:
        """It has nothing to close."""


@pytest.fixture
def slow_handler() -> Iterator[None]:
    """The handler of SIGUSR1 takes longer than the wait that it interrupts, as that of a drain does under load."""
    before = signal.signal(signal.SIGUSR1, lambda *_: time.sleep(0.2))
    yield
    signal.signal(signal.SIGUSR1, before)


def test_a_wait_ends_even_if_the_handler_of_a_signal_outlasts_it(slow_handler: None) -> None:
    plan: Any = None
    engine = IdleEngine(plan, "redis://nowhere", "nonce", None)
    engine._private.cleanup()
    signalled = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
    freed = threading.Timer(10, engine._events.put, (GroupExecuted(1, (), ()),))
    signalled.start()
    freed.start()
    assert engine.next_event(0.1) is None
    signalled.join()
    freed.cancel()
