"""A call into the Java process ends with that process, and as soon as it does not answer any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from coordinator.engines.spark.java.java_watch import JavaWatch
from state.errors import EngineError
from tests.support.spark.processes import RunningProcess

TIMEOUT_S = 30.0
OFTEN_S = 0.001
SOON_S = 0.06


@pytest.fixture
def process() -> Iterator[RunningProcess]:
    process = RunningProcess()
    yield process
    process.thaw.set()


def watch_over(process: RunningProcess, silence_max_s: float = TIMEOUT_S) -> JavaWatch:
    return JavaWatch(process, ping_s=OFTEN_S, silence_max_s=silence_max_s)


def hang() -> None:
    threading.Event().wait(TIMEOUT_S)


def broken() -> None:
    raise ConnectionRefusedError("refused")


def test_a_call_returns_what_it_gives_or_raises(process: RunningProcess) -> None:
    with watch_over(process) as watch:
        assert watch.call(lambda: 3) == 3
        with pytest.raises(ConnectionRefusedError):
            watch.call(broken)
        assert watch.lost is None


def test_a_call_into_a_frozen_process_ends_and_the_process_is_ended(process: RunningProcess) -> None:
    with watch_over(process, SOON_S) as watch:
        process.thaw.clear()
        with pytest.raises(EngineError, match=r"the Java process has not answered for 0\.06 s.*run again"):
            watch.call(hang)
        assert process.ended.wait(TIMEOUT_S)
        with pytest.raises(EngineError, match="has not answered"):
            watch.call(lambda: 3)


def test_a_process_that_is_slow_to_answer_is_left_alone(process: RunningProcess) -> None:
    with watch_over(process) as watch:
        process.thaw.clear()
        call: Future[int] = Future()
        threading.Timer(SOON_S, process.thaw.set).start()
        threading.Timer(2 * SOON_S, call.set_result, (3,)).start()
        assert watch.wait(call) == 3
        assert watch.lost is None


def test_whoever_waits_for_a_process_that_has_ended_is_told_how(process: RunningProcess) -> None:
    told: list[EngineError] = []
    has_told = threading.Event()

    def listen(error: EngineError) -> None:
        told.append(error)
        has_told.set()

    with watch_over(process) as watch:
        watch.tell(listen)
        process.error = ConnectionRefusedError("refused")
        with pytest.raises(EngineError, match="the Java process has ended: somebody killed it"):
            watch.wait(Future())
        assert has_told.wait(TIMEOUT_S)
        watch.tell(listen)  # late, and told all the same

    assert [str(error) for error in told] == [str(watch.lost)] * 2


def test_a_call_that_fails_because_the_process_has_ended_says_so(process: RunningProcess) -> None:
    with JavaWatch(process, ping_s=TIMEOUT_S) as watch:
        process.error = ConnectionRefusedError("refused")
        with pytest.raises(EngineError, match="somebody killed it"):
            watch.call(broken)


def test_an_application_that_is_stopped_by_others_is_told(process: RunningProcess) -> None:
    with watch_over(process) as watch:
        process.is_running = False
        with pytest.raises(EngineError, match="application was stopped from outside"):
            watch.wait(Future())


def test_an_application_that_we_stop_is_not(process: RunningProcess) -> None:
    with watch_over(process) as watch:
        watch.let_stop()
        process.is_running = False
        watch.check()
        assert watch.call(lambda: 3) == 3


def test_a_call_may_take_longer_than_the_process_may_be_silent(process: RunningProcess) -> None:
    with watch_over(process, silence_max_s=1.0) as watch:
        waited = threading.Event()
        assert watch.call(lambda: waited.wait(1.2)) is False
        assert watch.lost is None


def test_a_wait_may_have_a_time_of_its_own(process: RunningProcess) -> None:
    with watch_over(process) as watch, pytest.raises(TimeoutError):
        watch.wait(Future(), SOON_S)
