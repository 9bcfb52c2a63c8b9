"""An engine that starts when there is something for it."""

from __future__ import annotations

from typing import Any

from coordinator.transactional.engine import EarlyCommit, LateEngine, PhaseWaits, WaveProcessed


class Fake:
    """Notes what it is asked."""

    overlaps = queues = True

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def process(self, wave_id: int, *_: Any) -> None:
        self.asked.append(("process", wave_id))

    def next_event(self, timeout_s: float) -> WaveProcessed:
        return WaveProcessed(1, ())


def engine() -> tuple[LateEngine, list[Fake]]:
    started: list[Fake] = []

    def start() -> Any:
        started.append(Fake())
        return started[-1]

    return LateEngine(start, overlaps=True), started


def test_it_starts_with_the_first_wave_which_has_waited_for_it():
    late, started = engine()
    late.process(1, (), {}, EarlyCommit())
    assert [late.next_event(1.0), late.next_event(1.0)] == [PhaseWaits((1,)), WaveProcessed(1, ())]
    late.process(2, (), {}, EarlyCommit())
    assert late.next_event(1.0) == WaveProcessed(1, ())
    assert [fake.asked for fake in started] == [[("process", 1), ("process", 2)]]


def test_it_starts_when_a_run_that_goes_on_waits_for_something():
    late, started = engine()
    late.next_event(1.0)
    assert len(started) == 1
