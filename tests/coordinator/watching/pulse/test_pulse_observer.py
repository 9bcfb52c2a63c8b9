"""What is observed of a run becomes its pulse, from its beginning to however it ends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coordinator.watching import run_observer
from coordinator.watching.pulse.pulse_observer import PulseObserver
from coordinator.watching.pulse.pulse_writer import PulseWriter
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import FencedError
from state.records.run_pulse import PULSE_EVERY_S, RunFigures, RunState, pulse_of


class Writer(PulseWriter):
    """Keeps what it is told; has no thread."""

    def __init__(self) -> None:
        super().__init__(self, "{}", wall_clock=lambda: 1207.5, kept=10)
        self.fields: dict[str, str] = {}
        self.states: list[RunState] = []
        self.closed = 0

    def send(self, fields: Mapping[str, str], stories: list[tuple[int, str]], *, kept: int) -> bool:
        self.fields |= fields
        self.states.append(self.last().state)
        return True

    def take(self, *news: object) -> None:
        super().take(*news)  # type: ignore[arg-type]
        self.send_once()

    def close(self) -> None:
        self.closed += 1

    def last(self) -> RunFigures:
        pulse = pulse_of(self.fields)
        assert pulse is not None
        return pulse.now


class Run:
    """A pulse, its writer and its clock."""

    def __init__(self, **figures: int | bool) -> None:
        self.now_s = 7.0
        self.writer = Writer()
        self.starts = 0
        self.pulse = PulseObserver(self._start, clock=lambda: self.now_s, epoch_s=1200.0)
        self.statistics = RunStatistics(**figures)  # type: ignore[arg-type]
        self.condition = run_observer.RunCondition()

    def _start(self) -> PulseWriter:
        self.starts += 1
        return self.writer

    def begin(self) -> None:
        self.pulse(run_observer.RunBegan("test", self.statistics, 60.0, lambda: self.condition))


@pytest.mark.parametrize(
    ("error", "is_interrupted", "state"),
    [
        (None, False, RunState.DONE),
        (None, True, RunState.STOPPED),
        (KeyboardInterrupt(), False, RunState.STOPPED),
        (FencedError("wc"), False, RunState.FAILED),
    ],
    ids=["done", "drained before the end", "Ctrl-C", "an error"],
)
def test_how_a_run_ended(error: BaseException | None, is_interrupted: bool, state: RunState) -> None:
    run = Run(is_interrupted=is_interrupted, last_txid=4)
    run.begin()
    run.pulse(run_observer.RunEnded(error))
    assert (run.writer.last().state, run.writer.last().last_txid) == (state, 4)
    assert (run.starts, run.writer.closed) == (1, 1)


def test_a_run_that_could_not_begin_is_told_as_failed_and_before_that_nothing_is_sent() -> None:
    run = Run()
    run.pulse(run_observer.RunEnded(FencedError("wc")))
    assert (run.writer.states, run.writer.closed) == ([RunState.FAILED], 1)
    assert Run().starts == 0


def test_figures_are_told_at_once_and_then_once_a_second() -> None:
    run = Run()
    run.begin()
    run.condition = run_observer.RunCondition(is_draining=True)
    run.pulse(run_observer.TurnEnded(is_idle=False))
    run.now_s += PULSE_EVERY_S
    run.pulse(run_observer.TurnEnded(is_idle=False))
    run.pulse(run_observer.TurnEnded(is_idle=False))
    assert run.writer.states == [RunState.STARTING, RunState.DRAINING]


def test_a_run_that_finds_nothing_new_is_running_and_not_starting_for_ever() -> None:
    run = Run()
    run.begin()
    run.now_s += PULSE_EVERY_S
    run.pulse(run_observer.TurnEnded(is_idle=False))  # its first wave is under way
    run.now_s += PULSE_EVERY_S
    run.pulse(run_observer.TurnEnded(is_idle=True))
    assert run.writer.states == [RunState.STARTING, RunState.STARTING, RunState.RUNNING]


def test_a_fault_of_its_own_ends_the_pulse_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    run = Run()
    heard: list[object] = []
    pulse: run_observer.Observer = run.pulse
    observers = run_observer.Observers([pulse, heard.append])
    observers.notify(run_observer.RunBegan("test", run.statistics, 60.0, lambda: run.condition))
    run.pulse._book.note = None  # type: ignore[method-assign, assignment]
    observers.notify(run_observer.WaveStarted(1))
    observers.notify(run_observer.RunEnded(None))
    assert (run.writer.states, run.writer.closed, len(heard)) == ([RunState.STARTING], 1, 3)
    assert "was removed; the run continues" in caplog.text
