"""What a run tells its observers, in order, and that they cannot harm it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.run_observer import (
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    RunBegan,
    RunEnded,
    TurnEnded,
    WaveEnded,
    WaveStarted,
)
from coordinator.transactional.engine import WaveCrashed
from state.errors import UserCodeError
from tests.support.runs.answers import USER, failing_at, once
from tests.support.runs.scripted import Run
from tests.support.topologies.components import Count, build


def txids(observation):
    return [attempt.txid for attempt in observation.attempts]


def told(observation):
    match observation:
        case AttemptsIssued() | GroupCommitted():
            return (type(observation).__name__, txids(observation))
        case WaveStarted(wave_id) | WaveEnded(wave_id):
            return (type(observation).__name__, wave_id, txids(observation))
        case AttemptsFailed(phase=phase, cause=cause):
            return ("AttemptsFailed", txids(observation), phase, cause)
    return (type(observation).__name__,)


def test_waves_and_commits_are_told_in_the_order_in_which_they_happen():
    seen: list[Any] = []
    Run(3, max_spout_pending=4, observers=[seen.append])()
    assert [told(one) for one in seen if not isinstance(one, TurnEnded)] == [
        ("AttemptsIssued", [1, 2, 3]),
        ("WaveStarted", 1, [1, 2]),
        ("WaveEnded", 1, [1, 2]),
        ("WaveStarted", 2, [3]),
        ("GroupCommitted", [1, 2]),
        ("WaveEnded", 2, [3]),
        ("GroupCommitted", [3]),
    ]
    assert sum(isinstance(one, TurnEnded) for one in seen) >= 3


def test_a_failure_is_told_with_its_cause_and_those_it_takes_with_it():
    seen: list[Any] = []
    run = Run(3, max_spout_pending=6, observers=[seen.append])
    run.engine.on_wave = failing_at(run, 2)
    run()
    assert [told(one) for one in seen if isinstance(one, AttemptsFailed)] == [
        ("AttemptsFailed", [2, 3], "processing", "asked_for")
    ]
    assert run.coordinator.statistics.failures == {"asked_for": 1, "lower_failed": 1}
    assert run.coordinator.statistics.failed_attempts == 2
    assert run.coordinator.statistics.to_dict("test")["failures"] == {"asked_for": 1, "lower_failed": 1}


def test_a_crash_ends_its_wave_with_the_reason():
    seen: list[Any] = []
    run = Run(1, observers=[seen.append])
    run.engine.on_wave = once(lambda wave_id, _: WaveCrashed(wave_id, "a worker died"), run.engine.processed)
    run()
    assert [one.crash for one in seen if isinstance(one, WaveEnded)] == ["a worker died", None]
    assert run.coordinator.statistics.failures == {"worker_lost": 1}


def test_an_observer_that_raises_is_told_nothing_more_and_the_run_commits_all(caplog):
    calls: list[Any] = []
    seen: list[Any] = []

    def broken(observation):
        calls.append(observation)
        raise ValueError("no room left")

    run = Run(3, observers=[broken, seen.append])
    run()
    assert run.coordinator.statistics.committed == 3
    assert len(calls) == 1
    assert len(seen) > 5
    (record,) = [record for record in caplog.records if "told nothing more" in record.message]
    assert "ValueError: no room left" in (record.exc_text or "")


def test_the_error_that_ends_a_run_is_the_last_thing_told():
    seen: list[Any] = []
    run = Run(3, observers=[seen.append])
    run.engine.on_wave = failing_at(run, 1, kind=USER)
    topology, statistics = build(("count", Count(), ["lines"])), run.coordinator.statistics
    with pytest.raises(UserCodeError) as caught, run.coordinator._observers.observed(topology, statistics):
        run()
    assert seen[0] == RunBegan(topology.topology_id, statistics, topology.message_timeout_s)
    assert seen[-1] == RunEnded(caught.value)
