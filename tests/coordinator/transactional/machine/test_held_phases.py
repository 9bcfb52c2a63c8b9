"""Phases whose end the watch holds, and what it and the log are told of each attempt. Exact."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import CrashKind, PhaseEnded, WaveCrashed
from coordinator.transactional.failure_cause import FailureCause
from coordinator.transactional.machine.attempt_record import AttemptState
from coordinator.transactional.machine.run_events import (
    AskWatch,
    CancelWave,
    Dropped,
    Halt,
    Issued,
    Publish,
    ReleaseWave,
    Replayed,
    StartCommit,
    StartWave,
    TimePassed,
)
from coordinator.transactional.phase import Phase
from state.errors import EngineError, ProtocolError
from tests.support.machine.by_hand import (
    LATER,
    Driven,
    ScriptedSource,
    att,
    attempts_in,
    emitted,
    started,
)

BY_HAND = Failure(FailureKind.FAILED, "by hand", 0, "no")
WATCHED = {"may_hold": True}


def held_wave(**given):
    """A watched machine whose first wave has been processed, and its attempts; the watch has answered nothing yet."""
    driven = Driven(plan=WATCHED, max_spout_pending=4, **given)
    attempts = tuple(attempts_in(driven.turn()).values())
    outcomes = [AttemptResult(attempt) for attempt in attempts]
    assert driven.processed(1, attempts) == [AskWatch(outcome, 1) for outcome in outcomes]
    return driven, attempts, outcomes


def state_of(driven, attempt):
    record = driven.machine._transactions.current_of(attempt.txid)
    return None if record is None else record.state


def test_an_attempt_that_is_held_commits_only_once_the_watch_lets_it_pass():
    driven, (first, second), (one, two) = held_wave()
    assert driven.handle(PhaseEnded(second, two, 1)) == []
    assert [type(decision) for decision in driven.turn()] == [StartWave], "the first is held"
    assert (state_of(driven, first), state_of(driven, second)) == (AttemptState.HELD, AttemptState.PROCESSED)
    assert driven.handle(PhaseEnded(first, one, 1)) == []
    assert driven.turn() == [StartCommit(1, (first, second), composed=True)]


def test_an_attempt_that_is_held_can_fail_and_drops_the_later_ones():
    driven, (first, second), (one, two) = held_wave()
    driven.handle(PhaseEnded(second, two, 1))
    driven.notified.clear()
    assert driven.handle(PhaseEnded(first, one, 1, BY_HAND)) == [ReleaseWave(1)]
    (replayed, dropped) = driven.notified
    assert replayed == Replayed(first, str(BY_HAND), 1)
    assert isinstance(dropped, Dropped)
    assert dropped.attempts[:2] == (first, second)
    assert (dropped.phase, dropped.reason) == (Phase.PROCESSING, str(BY_HAND))
    assert emitted(driven.turn()) == [1, 2]


def test_the_end_of_what_was_held_for_a_void_attempt_is_ignored():
    driven, (first, second), (one, two) = held_wave()
    driven.handle(PhaseEnded(first, one, 1, BY_HAND))
    assert driven.handle(PhaseEnded(second, two, 1)) == []
    assert driven.handle(PhaseEnded(second, two, 1, BY_HAND)) == []


def test_a_phase_ends_once():
    driven, (first, _), (one, _) = held_wave()
    driven.handle(PhaseEnded(first, one, 1))
    with pytest.raises(ProtocolError, match="txid 1 cannot go from processed to processed"):
        driven.handle(PhaseEnded(first, one, 1))


def held_group():
    driven, (first, second), (one, two) = held_wave()
    driven.handle(PhaseEnded(first, one, 1))
    driven.handle(PhaseEnded(second, two, 1))
    driven.turn()
    group = driven.reported()
    assert driven.handle(group) == [AskWatch(group, 1)]
    return driven, group


def test_a_group_that_is_held_is_published_only_once_the_watch_lets_it_pass():
    driven, group = held_group()
    assert driven.turn() == []
    (publish,) = driven.handle(PhaseEnded(group.attempts[1], group, 1))
    assert isinstance(publish, Publish)
    assert publish.attempts == group.attempts


def test_of_a_group_that_is_held_one_can_fail_and_those_below_it_commit():
    driven, group = held_group()
    first, second = group.attempts
    assert driven.handle(PhaseEnded(second, group, 1, BY_HAND)) == [CancelWave(2)]
    assert (state_of(driven, first), state_of(driven, second)) == (AttemptState.PROCESSED, None)
    assert driven.turn() == [StartCommit(1, (first,), composed=True)]


def test_nothing_of_a_group_that_is_held_takes_too_long_for_nothing_of_it_runs():
    driven, _ = held_group()
    assert driven.handle(TimePassed(1_000.0)) == [CancelWave(2)], "the other wave runs"
    assert driven.machine._commits.phase is not None


def test_a_group_that_is_not_held_cannot_end():
    driven, group = held_group()
    driven.handle(PhaseEnded(group.attempts[0], group, 1))
    with pytest.raises(ProtocolError, match="ended but was not held"):
        driven.handle(PhaseEnded(group.attempts[0], group, 1))


@pytest.mark.parametrize(("limit", "size"), [(None, 3), (1, 1), (2, 2), (7, 3)])
def test_the_watch_can_make_a_group_smaller(limit, size):
    by_hand, attempts = started()
    for attempt in attempts.values():
        by_hand.ack(attempt)
    (commit,) = by_hand.turn(commit_limit=limit)
    assert isinstance(commit, StartCommit)
    assert len(commit.attempts) == size


# What is told of attempts


def test_issued_and_dropped_attempts_are_told_those_that_waited_too_but_only_started_ones_have_failed():
    driven = Driven(max_spout_pending=4)
    driven.turn()
    four = tuple(att(txid, txid) for txid in (1, 2, 3, 4))
    assert driven.notified == [Issued(four)]
    driven.processed(1, four[:2], 1)
    assert driven.notified[1:] == [
        Replayed(four[0], str(LATER), 1),
        Dropped(four, Phase.PROCESSING, str(LATER), FailureCause.ASKED_FOR),
    ]
    assert driven.machine.statistics.failed_attempts == 2


def test_a_crash_is_told_but_not_as_the_replay_of_one_attempt():
    driven = Driven(max_spout_pending=2)
    driven.turn()
    driven.handle(WaveCrashed(1, "gone"))
    assert driven.notified[1:] == [Dropped((att(1, 1), att(2, 2)), Phase.PROCESSING, "gone", FailureCause.WORKER_LOST)]


# Kinds of crashes


def test_a_crash_that_is_certain_to_repeat_halts():
    driven = Driven(ScriptedSource(["yes"]), max_spout_pending=1)
    driven.turn()
    driven.handle(WaveCrashed(1, "no such file", CrashKind.CERTAIN))
    (halt,) = driven.turn()
    assert isinstance(halt, Halt)
    assert isinstance(halt.error, EngineError)
    assert "Spark cannot run txid 1: no such file; lower txids are committed" in str(halt.error)


@pytest.mark.parametrize("is_told", [True, False], ids=["by the engine", "by the clock"])
def test_waves_that_took_too_long_are_never_that_large_again(is_told):
    driven = Driven(max_spout_pending=8, commit_group_max=8)
    assert len(attempts_in(driven.turn())) == 4
    if not is_told:
        assert driven.handle(TimePassed(61.0)) == [CancelWave(1)]
    driven.handle(WaveCrashed(1, "late", CrashKind.OVERDUE if is_told else CrashKind.LOST))
    sizes = []
    for wave_id in (2, 3, 4):
        attempts = tuple(attempts_in(driven.turn(70.0 * wave_id)).values())
        sizes.append(len(attempts))
        driven.processed(wave_id, attempts)
    assert sizes == [2, 2, 2]
    reason = "late" if is_told else "it exceeded the message timeout of 60 s and was cancelled"
    (dropped,) = (told for told in driven.notified if isinstance(told, Dropped))
    assert dropped.reason == f"{reason}; if it needs longer, raise the limit with the builder's set_message_timeout_s"


def test_a_wave_that_ended_before_it_could_be_cancelled_did_not_take_too_long():
    driven = Driven(max_spout_pending=8, commit_group_max=8)
    attempts = tuple(attempts_in(driven.turn()).values())
    driven.handle(TimePassed(61.0))
    driven.processed(1, attempts)
    assert len(attempts_in(driven.turn(62.0))) == 4
