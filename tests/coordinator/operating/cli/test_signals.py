"""A signal ends a run in order if there is time for it, and in any case."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coordinator.operating.cli.exits import StoppedError
from coordinator.operating.cli.signals import EARLY_SIGNAL, FIRST_SIGNAL, TIME_IS_UP, DrainOnSignal

FOR_EVER_S = 30.0
SHORT_S = 0.05


def quiet(sentence: str) -> None:
    """Says nothing."""


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def hang() -> None:
    """Waits in the main thread for what never happens."""
    threading.Event().wait(FOR_EVER_S)


@contextmanager
def stops() -> Iterator[list[int]]:
    """Yields the numbers of the signals that have stopped the block."""
    numbers: list[int] = []
    try:
        yield numbers
    except StoppedError as error:
        numbers.append(error.signal_number)


def bounds() -> set[threading.Thread]:
    """The threads that wait for somebody's time to be up."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("txbatch-bound")}


class Ended:
    """Stands in for the end of the process."""

    def __init__(self) -> None:
        self.by: list[int] = []
        self.called = threading.Event()

    def __call__(self, number: int) -> None:
        self.by.append(number)
        self.called.set()


def test_a_drain_that_hangs_is_stopped_once_the_time_of_sigterm_is_up() -> None:
    shown: list[str] = []
    drained: list[str] = []
    with stops() as stopped, DrainOnSignal(shown.append, stop_timeout_s=SHORT_S) as signals:
        signals.drain_by(lambda: drained.append("drained"))
        send(signal.SIGTERM)
        hang()
    assert drained == ["drained"]
    assert stopped == [signal.SIGTERM]
    assert shown == [FIRST_SIGNAL, TIME_IS_UP]


@pytest.mark.parametrize(
    ("number", "has_begun"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_a_start_or_a_stop_that_hangs_ends_the_process_as_it_stands(number: int, has_begun: bool) -> None:
    ended = Ended()
    with stops() as stopped, DrainOnSignal(quiet, stop_timeout_s=SHORT_S, end=ended) as signals:
        if has_begun:
            signals.drain_by(lambda: None)
        try:
            send(number)
            hang()
        finally:
            assert ended.called.wait(FOR_EVER_S)  # as if closing never came to an end
    assert stopped == ended.by == [number]


def test_a_signal_while_spark_starts_is_answered_at_once() -> None:
    shown: list[str] = []
    with stops() as stopped, DrainOnSignal(shown.append):
        send(signal.SIGINT)
        hang()
    assert stopped == [signal.SIGINT]
    assert shown == [EARLY_SIGNAL]


def test_ctrl_c_lets_a_drain_take_its_time() -> None:
    ended, before = Ended(), bounds()  # some may be of a run that has ended just now
    with DrainOnSignal(quiet, stop_timeout_s=SHORT_S, end=ended) as signals:
        signals.drain_by(lambda: None)
        send(signal.SIGINT)
        assert bounds() - before == set()
    assert ended.by == []


def test_a_run_that_ends_in_time_is_left_alone() -> None:
    ended = Ended()
    before = signal.getsignal(signal.SIGTERM)
    with DrainOnSignal(quiet, stop_timeout_s=FOR_EVER_S, end=ended) as signals:
        signals.drain_by(lambda: None)
        send(signal.SIGTERM)
    for thread in bounds():
        thread.join(FOR_EVER_S / 2)
        assert not thread.is_alive()
    assert ended.by == []
    assert signal.getsignal(signal.SIGTERM) is before
