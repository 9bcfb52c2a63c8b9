"""The engine by itself, as the coordinator may use it: commands in, events out, at any moment."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.spouts.batch import Batch
from coordinator.testing.cluster.batch_tasks import TaskInput
from coordinator.testing.cluster.local_engine import LocalEngine
from coordinator.testing.cluster.mailroom import Mailroom
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed, WaveProcessed
from state.attempt import TransactionAttempt
from state.codec import pack
from tests.support.scenarios.playing import in_flight
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.small import small
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import plan

GROUP = (TransactionAttempt(1, 71), TransactionAttempt(2, 72))
WAVE = 5


class Driven:
    """An engine with one wave of two attempts, stepped by hand."""

    def __init__(self) -> None:
        self.tally = LocalTally("engine")
        made = plan(topology_of(small(), self.tally))
        self.mailroom: Mailroom[TaskInput] = Mailroom(Random(3), 4)
        self.engine = LocalEngine(made, self.mailroom, MemoryStore())
        self.engine.process(WAVE, tuple(Batch(attempt, pack(2)) for attempt in GROUP), {}, EarlyCommit())

    def step(self, count: int) -> int:
        """Takes up to `count` steps; returns how many it took."""
        return sum(self.engine.step() for _ in range(count))

    def event(self) -> Event | None:
        while not self.engine.has_event() and self.engine.step():
            pass
        return self.engine.next_event(0)

    def processed(self) -> None:
        event = self.event()
        assert isinstance(event, WaveProcessed)
        assert [outcome.failure for outcome in event.outcomes] == [None, None]

    def executed(self) -> list[list[int]]:
        """The group has run well; the edges of every result."""
        event = self.event()
        assert isinstance(event, GroupExecuted)
        assert all(result.failure is None for report in event.reports for result in report.results)
        return [[result.edges for result in report.results] for report in event.reports]

    def release(self) -> None:
        self.engine.release(WAVE)
        assert in_flight(self.mailroom) == 0
        assert self.tally.counts["prepared"] == self.tally.counts["cleaned up"]
        assert self.tally.counts["opened"] == self.tally.counts["closed"] > 0


@pytest.fixture
def driven() -> Driven:
    return Driven()


def steps_of_both_phases() -> tuple[int, int]:
    driven = Driven()
    in_processing = driven.step(10_000)
    driven.processed()
    driven.engine.commit(WAVE, GROUP, composed=True)
    return in_processing, driven.step(10_000)


def test_a_wave_cancelled_at_any_step_crashes_once_and_leaves_nothing():
    for count in range(1, steps_of_both_phases()[0]):
        driven = Driven()
        driven.step(count)
        driven.engine.cancel(WAVE)
        assert driven.event() == WaveCrashed(WAVE, "cancelled")
        driven.engine.cancel(WAVE)
        assert driven.event() is None
        driven.release()


def test_a_group_cancelled_at_any_step_crashes_once_and_may_begin_again():
    edges = set()
    for count in range(steps_of_both_phases()[1]):
        driven = Driven()
        driven.processed()
        driven.engine.commit(WAVE, GROUP, composed=True)
        driven.step(count)
        driven.engine.cancel(WAVE)
        assert driven.event() == GroupCrashed(WAVE, GROUP, "cancelled")
        driven.engine.commit(WAVE, GROUP, composed=False)
        edges.add(str(driven.executed()))
        driven.release()
    assert len(edges) == 1


def test_what_is_over_cannot_be_cancelled(driven):
    driven.processed()
    driven.engine.cancel(WAVE)
    assert driven.event() is None
    driven.engine.commit(WAVE, GROUP, composed=True)
    driven.executed()
    driven.engine.cancel(WAVE)
    driven.engine.cancel(WAVE + 1)
    assert driven.event() is None
    driven.release()


def test_closing_lets_go_of_what_was_not_released(driven):
    driven.step(20)
    driven.engine.close()
    assert in_flight(driven.mailroom) == 0
    assert driven.tally.counts["prepared"] == driven.tally.counts["cleaned up"] > 0
    assert not driven.engine.step()
