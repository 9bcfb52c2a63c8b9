"""A signal ends a run in order if there is time for it, and in any case."""

from __future__ import annotations

import os
import signal
import threading

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


class Ended:
    """Stands in for the end of the process."""

    def __init__(self) -> None:
        self.by: list[int] = []
        self.called = threading.Event()

    def __call__(self, number: int) -> None:
        self.by.append(number)
        self.called.set()


def test_a_drain_that_hangs_is_stopped_once_the_time_of_sigterm_is_up() -> None:
    said: list[str] = []
    drained: list[str] = []
    stopped: list[int] = []
    try:
        with DrainOnSignal(said.append, stop_timeout_s=SHORT_S) as signals:
            signals.drain_by(lambda: drained.append("drained"))
            send(signal.SIGTERM)
            hang()
    except StoppedError as error:
        stopped.append(error.signal_number)

    assert drained == ["drained"]
    assert stopped == [signal.SIGTERM]
    assert said == [FIRST_SIGNAL, TIME_IS_UP]


def test_a_stop_that_hangs_ends_the_process_as_it_stands() -> None:
    ended = Ended()
    try:
        with DrainOnSignal(quiet, stop_timeout_s=SHORT_S, end=ended) as signals:
            signals.drain_by(lambda: None)
            try:
                send(signal.SIGTERM)
                hang()
            finally:
                assert ended.called.wait(FOR_EVER_S)  # as if closing never came to an end
    except StoppedError:
        pass

    assert ended.by == [signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_run_has_begun_ends_a_start_that_hangs(number: int) -> None:
    ended = Ended()
    try:
        with DrainOnSignal(quiet, stop_timeout_s=SHORT_S, end=ended):
            try:
                send(number)
                hang()
            finally:
                assert ended.called.wait(FOR_EVER_S)
    except StoppedError:
        pass

    assert ended.by == [number]


def test_a_signal_while_spark_starts_is_answered_at_once() -> None:
    said: list[str] = []
    stopped: list[int] = []
    try:
        with DrainOnSignal(said.append):
            send(signal.SIGINT)
            hang()
    except StoppedError as error:
        stopped.append(error.signal_number)
    assert stopped == [signal.SIGINT]
    assert said == [EARLY_SIGNAL]


def test_ctrl_c_lets_a_drain_take_its_time() -> None:
    ended, before = Ended(), set(threading.enumerate())  # some may be of a run that has ended just now
    with DrainOnSignal(quiet, stop_timeout_s=SHORT_S, end=ended) as signals:
        signals.drain_by(lambda: None)
        send(signal.SIGINT)
        assert [thread.name for thread in set(threading.enumerate()) - before] == []

    assert ended.by == []


def test_a_run_that_ends_in_time_is_left_alone() -> None:
    ended = Ended()
    before = signal.getsignal(signal.SIGTERM)
    with DrainOnSignal(quiet, stop_timeout_s=SHORT_S, end=ended) as signals:
        signals.drain_by(lambda: None)
        send(signal.SIGTERM)
    for thread in threading.enumerate():
        if thread.name.startswith("txbatch-bound"):
            thread.join(FOR_EVER_S)

    assert ended.by == []
    assert signal.getsignal(signal.SIGTERM) is before
