"""Groups that are limited, attempts that are failed by hand, and what observers hear of each. Exact."""

from __future__ import annotations

import pytest

from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import FailedByHand, GroupExecuted, WaveCrashed
from coordinator.transactional.machine.run_events import (
    CancelWave,
    ReleaseWave,
    SpoutNotified,
    StartCommit,
    StartWave,
    TimePassed,
)
from coordinator.transactional.machine.transaction_record import AttemptState
from coordinator.watching.failure_cause import CrashKind, FailureCause, Phase
from coordinator.watching.run_observer import AttemptRetried, AttemptsFailed, AttemptsIssued, TransactionCut
from state.errors import ProtocolError
from tests.support.machine.by_hand import LATER, Driven, acked, att, attempts_in, emitted, two_processed

BY_HAND = Failure(FailureKind.FAILED, "by hand", 0, "no")


def state_of(driven, attempt):
    record = driven.machine._transactions.current_of(attempt.txid)
    return None if record is None else record.state


def test_an_attempt_commits_only_once_the_limit_reaches_it():
    driven, (first, second) = two_processed()
    assert [type(decision) for decision in driven.turn(commit_limit=0)] == [StartWave], "both wait"
    assert driven.turn(commit_limit=1) == [StartCommit(1, (first,), composed=True)]
    assert state_of(driven, second) is AttemptState.PROCESSED


def test_a_processed_attempt_that_is_failed_by_hand_drops_the_later_ones():
    driven, (first, second) = two_processed()
    driven.notified.clear()
    assert driven.handle(FailedByHand(first, BY_HAND)) == [ReleaseWave(1)]
    (retried, dropped) = driven.notified
    assert retried == AttemptRetried(first, str(BY_HAND), 1)
    assert isinstance(dropped, AttemptsFailed)
    assert dropped.attempts[:2] == (first, second)
    assert (dropped.phase, dropped.reason) == (Phase.PROCESSING, str(BY_HAND))
    assert emitted(driven.turn()) == [1, 2]


def test_a_void_attempt_cannot_be_failed_by_hand():
    driven, (first, second) = two_processed()
    driven.handle(FailedByHand(first, BY_HAND))
    assert driven.handle(FailedByHand(second, BY_HAND)) == []


def committing_group():
    driven, attempts = two_processed()
    driven.turn()
    return driven, driven.reported(), attempts


def test_of_a_group_one_can_be_failed_by_hand_and_those_below_it_commit():
    driven, group, (first, second) = committing_group()
    assert driven.handle(FailedByHand(second, BY_HAND, group)) == [CancelWave(2)]
    assert (state_of(driven, first), state_of(driven, second)) == (AttemptState.PROCESSED, None)
    assert driven.turn() == [StartCommit(1, (first,), composed=True)]


def test_a_group_that_was_reported_cannot_be_failed_by_hand():
    driven, group, (first, _) = committing_group()
    driven.handle(group)
    driven.published()
    driven.handle(SpoutNotified())
    assert driven.handle(FailedByHand(first, BY_HAND, group)) == []


def test_a_group_that_is_not_in_its_commit_phase_cannot_be_failed_by_hand():
    driven, (first, second) = two_processed()
    group = GroupExecuted(1, (first, second), ())
    with pytest.raises(ProtocolError, match="in a group that is not in its commit phase"):
        driven.handle(FailedByHand(first, BY_HAND, group))


def test_a_group_in_its_commit_phase_is_not_failed_by_hand_as_if_it_were_processed():
    driven, _, (first, _) = committing_group()
    with pytest.raises(ProtocolError, match="was failed by hand while it was committing"):
        driven.handle(FailedByHand(first, BY_HAND))


@pytest.mark.parametrize(("limit", "size"), [(None, 3), (1, 1), (2, 2), (7, 3)])
def test_a_limit_makes_a_group_smaller(limit, size):
    by_hand, _ = acked()
    (commit,) = by_hand.turn(commit_limit=limit)
    assert isinstance(commit, StartCommit)
    assert len(commit.attempts) == size


# What is told of attempts


def test_issued_and_dropped_attempts_are_told_those_that_waited_too():
    driven = Driven(max_spout_pending=4)
    driven.turn()
    four = tuple(att(txid, txid) for txid in (1, 2, 3, 4))
    assert driven.notified == [AttemptsIssued(four, tuple(TransactionCut(txid, 0.0, 0) for txid in (1, 2, 3, 4)))]
    driven.processed(1, four[:2], 1)
    assert driven.notified[1:] == [
        AttemptRetried(four[0], str(LATER), 1),
        AttemptsFailed(four, Phase.PROCESSING, FailureCause.ASKED_FOR, str(LATER)),
    ]


def test_a_crash_is_told_but_not_as_the_replay_of_one_attempt():
    driven = Driven(max_spout_pending=2)
    driven.turn()
    driven.handle(WaveCrashed(1, "gone"))
    assert driven.notified[1:] == [
        AttemptsFailed((att(1, 1), att(2, 2)), Phase.PROCESSING, FailureCause.WORKER_LOST, "gone")
    ]


# Kinds of crashes


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
    (dropped,) = (told for told in driven.notified if isinstance(told, AttemptsFailed))
    assert dropped.reason == f"{reason}; if it needs longer, raise the limit with the builder's set_message_timeout_s"


def test_a_wave_that_ended_before_it_could_be_cancelled_did_not_take_too_long():
    driven = Driven(max_spout_pending=8, commit_group_max=8)
    attempts = tuple(attempts_in(driven.turn()).values())
    driven.handle(TimePassed(61.0))
    driven.processed(1, attempts)
    assert len(attempts_in(driven.turn(62.0))) == 4
