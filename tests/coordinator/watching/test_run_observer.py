"""What a run tells its observers, in order, and that they cannot harm it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.transactional.engine import WaveCrashed
from coordinator.watching import run_observer
from state.errors import UserCodeError
from tests.support.runs.answers import USER, failing_at, once
from tests.support.runs.scripted import Run


def txids(observation):
    return [attempt.txid for attempt in observation.attempts]


def told(observation):
    match observation:
        case run_observer.AttemptsIssued() | run_observer.GroupCommitted():
            return (type(observation).__name__, txids(observation))
        case run_observer.WaveStarted(wave_id) | run_observer.WaveEnded(wave_id):
            return (type(observation).__name__, wave_id, txids(observation))
        case run_observer.AttemptsFailed(phase=phase, cause=cause):
            return ("AttemptsFailed", txids(observation), phase, cause)
    return (type(observation).__name__,)


def observed(transactions: int, **options: Any) -> tuple[Run, list[Any]]:
    """A run, and what it has told."""
    seen: list[Any] = []
    return Run(transactions, observers=[seen.append], **options), seen


def test_waves_and_commits_are_told_in_the_order_in_which_they_happen():
    run, seen = observed(3, max_spout_pending=4)
    run()
    assert [told(one) for one in seen if not isinstance(one, run_observer.TurnEnded)] == [
        ("RunBegan",),
        ("AttemptsIssued", [1, 2, 3]),
        ("WaveStarted", 1, [1, 2]),
        ("WaveEnded", 1, [1, 2]),
        ("WaveStarted", 2, [3]),
        ("GroupCommitted", [1, 2]),
        ("WaveEnded", 2, [3]),
        ("GroupCommitted", [3]),
    ]
    assert sum(isinstance(one, run_observer.TurnEnded) for one in seen) >= 3


def test_a_failure_is_told_with_its_cause_and_those_it_takes_with_it():
    run, seen = observed(3, max_spout_pending=6)
    run.engine.on_wave = failing_at(run, 2)
    run()
    assert [told(one) for one in seen if isinstance(one, run_observer.AttemptsFailed)] == [
        ("AttemptsFailed", [2, 3], "processing", "asked_for")
    ]
    (replayed,) = [one for one in seen if isinstance(one, run_observer.AttemptRetried)]
    assert (replayed.attempt.txid, replayed.wave_id) == (2, 1)
    assert run.coordinator.statistics.failures == {"asked_for": 1, "lower_failed": 1}
    assert run.coordinator.statistics.failed_attempts == 2
    assert run.coordinator.statistics.to_dict("test")["failures"] == {"asked_for": 1, "lower_failed": 1}
    issued = [one for one in seen if isinstance(one, run_observer.AttemptsIssued)]
    assert [txids(one) for one in issued] == [[1, 2, 3], [2, 3]]
    assert [[cut.txid for cut in one.cuts] for one in issued] == [[1, 2, 3], []], "as cut with the first attempt only"


def test_a_crash_ends_its_wave_with_the_reason():
    run, seen = observed(1)
    run.engine.on_wave = once(lambda wave_id, _: WaveCrashed(wave_id, "a worker died"), run.engine.processed)
    run()
    assert [one.crash for one in seen if isinstance(one, run_observer.WaveEnded)] == ["a worker died", None]
    assert run.coordinator.statistics.failures == {"worker_lost": 1}


def test_an_observer_that_raises_is_removed_and_the_run_commits_all(caplog):
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
    (record,) = [record for record in caplog.records if "raised and was removed" in record.message]
    assert "ValueError: no room left" in (record.exc_text or "")


def test_the_error_that_ends_a_run_is_the_last_thing_told():
    run, seen = observed(3)
    run.engine.on_wave = failing_at(run, 1, kind=USER)
    with pytest.raises(UserCodeError) as caught, run.observers.until_the_end():
        run()
    assert seen[0] == run_observer.RunBegan("test", run.coordinator.statistics, 60.0)
    assert seen[-1] == run_observer.RunEnded(caught.value)


def test_what_ended_a_run_is_told_although_its_caller_closes_it_as_if_all_were_well():
    run, seen = observed(3)
    run.engine.on_wave = failing_at(run, 1, kind=USER)
    with run.observers.until_the_end(), pytest.raises(UserCodeError) as caught:  # as `ExactlyOnce` does
        run()
    assert seen[-1] == run_observer.RunEnded(caught.value)


def test_a_commit_is_told_with_what_its_tasks_reported_of_it():
    run, seen = observed(3, max_spout_pending=4)
    run()
    groups = [one for one in seen if isinstance(one, run_observer.GroupCommitted)]
    assert [len(group.reports) for group in groups] == [len(run.plan.commit_tasks)] * 2
    assert [len(report.results) for group in groups for report in group.reports] == [2, 1]
    assert [(group.is_set_aside, group.republished_txid, group.republished_letters) for group in groups] == [
        (False, 0, 0)
    ] * 2


def test_what_a_run_stands_at_can_be_asked_while_it_runs():
    run = Run(3, max_spout_pending=4, observers=[])
    windows: list[Any] = []
    run.on_progress = lambda statistics: windows.append(dict(run.coordinator.condition().window))
    run()
    assert {"waiting": 1, "processing": 0, "processed": 2, "committing": 0} in windows
    assert not run.coordinator.condition().is_draining
    run.coordinator.drain()
    assert run.coordinator.condition().is_draining
