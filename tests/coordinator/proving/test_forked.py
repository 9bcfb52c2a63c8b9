"""A copy of the process ends with its original, and does not outlive a call of user code that never returns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from timeit import timeit

import pytest

from coordinator.proving import forked
from coordinator.proving.forked import in_a_copy
from state.errors import TransactionError
from state.redis_client.presence import is_gone, pid_space

LOOPS = """
import os, sys
from coordinator.proving.forked import in_a_copy

def loops():
    print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass

in_a_copy(loops)
"""


WAIT_S = 20.0


def wait_until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_copy_that_loops_ends_with_its_original(tmp_path: Path, number: signal.Signals) -> None:
    told = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", LOOPS, str(told)], stderr=subprocess.DEVNULL) as original:
        wait_until(lambda: told.exists() and told.read_text().endswith("\n"))
        copy = int(told.read_text())
        original.send_signal(number)
        try:
            original.wait(WAIT_S)
            wait_until(lambda: is_gone(copy, pid_space()))
        finally:
            for each in (original.pid, copy):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)


def loops() -> None:
    sum(each for each in iter(int, 1))  # noughts without end


def sleeps() -> None:
    time.sleep(60)


@pytest.mark.parametrize("act", [loops, sleeps])
def test_a_call_that_does_not_return_is_named_with_its_line(
    act: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "RETURNS_WITHIN_S", 0.2)
    monkeypatch.setattr(forked, "LOOKED_AFTER_EVERY_S", 0.05)
    with pytest.raises(TransactionError) as raised:
        in_a_copy(act)
    line = act.__code__.co_firstlineno + 1
    assert str(raised.value) == f"the topology's code has not returned for 0.2 s, at {__file__}:{line}"


def returns() -> None:
    time.sleep(0.05)


def test_calls_that_return_may_be_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "RETURNS_WITHIN_S", 0.2)
    monkeypatch.setattr(forked, "LOOKED_AFTER_EVERY_S", 0.01)
    in_a_copy(partial(timeit, returns, number=10))
