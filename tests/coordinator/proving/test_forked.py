"""A copy of the process ends with its original, and does not outlive a call of user code that never returns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from timeit import timeit
from typing import Any

import pytest

from coordinator.proving import forked
from coordinator.proving.forked import in_a_copy
from coordinator.sources.batches import BatchesCoordinator
from state.errors import TransactionError
from state.redis_client.presence import is_gone, pid_space
from tests.support.sources.reading import standing

LOOPS = """
import os, signal, sys
from coordinator.proving.forked import in_a_copy

def loops():
    print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore some
signal.signal(signal.SIGHUP, signal.SIG_DFL)
in_a_copy(loops)
"""


WAIT_S = 20.0


def wait_until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@pytest.mark.skipif(not pid_space(), reason="nobody can tell here whether a process has ended")
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


@pytest.fixture
def looked_after_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "LOOKED_AFTER_EVERY_S", 0.02)
    # The system's clock would also count for how long a busy machine leaves the copy waiting.
    monkeypatch.setattr(forked._Copy, "_let_the_system_end_it", lambda self: None)


@pytest.mark.usefixtures("looked_after_often")
@pytest.mark.parametrize("act", [loops, sleeps])
def test_a_call_that_does_not_return_is_named_with_its_line(act: Callable[[], None]) -> None:
    with pytest.raises(TransactionError) as raised:
        in_a_copy(act, returns_within_s=0.5)
    line = act.__code__.co_firstlineno + 1
    assert str(raised.value) == f"the topology's code has not returned for 0.5 s, at {__file__}:{line}"


def test_a_call_that_lets_nothing_else_run_is_ended_by_the_system() -> None:
    with pytest.raises(TransactionError, match=r"has not returned for 0\.5 s, and has let no other thread run"):
        in_a_copy(partial(sum, repeat(0)), returns_within_s=0.5)


def returns() -> None:
    time.sleep(0.1)


@pytest.mark.usefixtures("looked_after_often")
def test_calls_that_return_may_be_many() -> None:
    in_a_copy(partial(timeit, returns, number=10), returns_within_s=0.5)


def pages() -> Iterator[list[list[int]]]:
    for number in range(10):
        time.sleep(0.1)
        yield [[number]]


@pytest.mark.usefixtures("looked_after_often")
def test_each_step_of_a_generator_is_a_call_of_its_own() -> None:
    coordinator = BatchesCoordinator(pages, ("number",), "numbers")
    standing(coordinator).resume()
    cuts = map(coordinator.initialize_transaction, range(1, 11), repeat(None))
    cut: list[Any] = in_a_copy(partial(list, cuts), returns_within_s=0.5)
    assert [rows for _, rows, _ in cut] == [[[number]] for number in range(10)]


def leaves_a_process() -> int:
    child = os.fork()
    if child == 0:
        time.sleep(WAIT_S)
        os._exit(0)
    return child


def test_a_process_that_user_code_has_left_holds_up_nothing_and_is_ended() -> None:
    child = in_a_copy(leaves_a_process)
    wait_until(lambda: is_gone(child, pid_space()))
