"""What is released upstream waits for the level asked for: `Releases`, each rule as an exact list of decisions."""

from __future__ import annotations

from unittest import mock

import pytest

from coordinator.transactional.engine import GroupExecuted
from coordinator.transactional.machine import releases
from coordinator.transactional.machine.run_events import (
    AskBarrier,
    AskForEnd,
    BarrierConfirmed,
    CancelWave,
    Done,
    Halt,
    InputState,
    NotifySpout,
    Publish,
    Resumed,
    SpoutNotified,
    StartCommit,
    TimePassed,
    Turn,
)
from state.errors import NotDurableError, UserCodeError
from tests.support.machine.by_hand import ByHand, ScriptedSource, att, attempts_in, halted, ready, started

EXHAUSTED = InputState(is_exhausted=True)
UNTOLD = (att(4, 40), att(5, 50))


def waiting(source=None, **given):
    """A machine at level fsync whose window is under way."""
    return started(source, **({"durability": "fsync", "commit_group_max": 1} | given))


def commit(by_hand, attempt, decided=()):
    """One transaction, from its ack to the answer of the store; returns what follows from that answer."""
    by_hand.ack(attempt)
    assert StartCommit(1, (attempt,), composed=True) in by_hand.turn()
    *_, publish = by_hand.executed()
    assert isinstance(publish, Publish)
    return by_hand.published()


def committed_and_idle(state):
    """A run whose only transaction is committed, and told at 5 s how its input stands; what follows."""
    by_hand, window = waiting(ScriptedSource(["yes"]), max_spout_pending=1)
    commit(by_hand, window[1])
    assert by_hand.turn(5.0) == [AskBarrier(1, 0), AskForEnd()]
    return by_hand, by_hand.handle(state)


def confirm(by_hand, txid, now_s=0.0):
    """A barrier is confirmed, and the spout told."""
    by_hand.handle(BarrierConfirmed(txid, now_s))
    by_hand.handle(SpoutNotified())


def notified_txid(by_hand):
    """How far the spout was told, as the last commit says."""
    assert by_hand.sent is not None
    return by_hand.sent.notified_txid


def barriers(decisions):
    return [decision for decision in decisions if isinstance(decision, AskBarrier)]


# Level memory


def test_at_level_memory_a_group_is_told_at_once_and_no_barrier_is_asked_for():
    by_hand, window = started(commit_group_max=1)
    assert commit(by_hand, window[1]) == [NotifySpout((window[1],))]
    assert by_hand.handle(SpoutNotified()) == []
    assert barriers(by_hand.turn()) == []
    assert by_hand.machine.released_txid == 1


def test_at_level_memory_a_run_begins_by_telling_what_earlier_ones_may_not_have_told():
    by_hand = ByHand(committed_txid=5, metadata={5: "m"})
    assert by_hand.handle(Resumed(UNTOLD)) == [NotifySpout(UNTOLD)]
    assert by_hand.handle(SpoutNotified()) == []
    assert barriers(by_hand.turn()) == []


# A level that waits


def test_a_committed_group_is_told_once_the_barrier_after_it_is_confirmed():
    by_hand, window = waiting()
    assert commit(by_hand, window[1]) == []
    assert barriers(by_hand.turn()) == [AskBarrier(up_to_txid=1, confirmed_txid=0)]
    assert by_hand.machine.released_txid == 0
    assert by_hand.handle(BarrierConfirmed(1, 0.0)) == [NotifySpout((window[1],))]
    assert by_hand.handle(SpoutNotified()) == []
    assert by_hand.machine.released_txid == 1


def test_groups_committed_while_a_barrier_is_out_share_the_next_one():
    by_hand, window = waiting()
    commit(by_hand, window[1])
    assert barriers(by_hand.turn()) == [AskBarrier(1, 0)]
    commit(by_hand, window[2])
    commit(by_hand, window[3])
    assert barriers(by_hand.turn()) == []
    assert by_hand.handle(BarrierConfirmed(1, 0.0)) == [NotifySpout((window[1],))]
    by_hand.handle(SpoutNotified())
    assert barriers(by_hand.turn()) == [AskBarrier(up_to_txid=3, confirmed_txid=1)]
    assert by_hand.handle(BarrierConfirmed(3, 0.0)) == [NotifySpout((window[2], window[3]))]


def test_the_answer_to_another_barrier_releases_nothing():
    by_hand, window = waiting()
    commit(by_hand, window[1])
    by_hand.turn()
    assert by_hand.handle(BarrierConfirmed(7, 0.0)) == []
    assert by_hand.machine.released_txid == 0


def test_a_commit_says_how_far_the_spout_was_told_only_if_that_is_not_everything_before():
    by_hand, window = waiting()
    commit(by_hand, window[1])
    assert notified_txid(by_hand) is None
    commit(by_hand, window[2])
    assert notified_txid(by_hand) == 0
    by_hand.turn()
    confirm(by_hand, 1)
    commit(by_hand, window[3])
    assert notified_txid(by_hand) == 1


def test_a_run_begins_by_confirming_what_earlier_ones_committed_before_it_tells_it():
    by_hand = ByHand(ScriptedSource(), committed_txid=5, metadata={5: "m"}, durability="fsync")
    assert by_hand.handle(Resumed(UNTOLD)) == []
    assert by_hand.turn() == [AskBarrier(up_to_txid=5, confirmed_txid=0), AskForEnd()]
    assert by_hand.handle(BarrierConfirmed(5, 0.0)) == [NotifySpout(UNTOLD)]


def test_commits_say_how_far_the_spout_was_told_by_earlier_runs():
    by_hand = ByHand(ready(), committed_txid=5, metadata={5: "m"}, durability="fsync")
    by_hand.handle(Resumed(UNTOLD))
    commit(by_hand, attempts_in(by_hand.turn())[6])
    assert notified_txid(by_hand) == 3


# The end


def test_a_run_is_not_done_before_everything_is_confirmed():
    by_hand, decided = committed_and_idle(EXHAUSTED)
    assert decided == []
    confirm(by_hand, 1)
    by_hand.turn()
    assert by_hand.handle(EXHAUSTED) == [Done()]


def test_a_run_with_nothing_to_do_confirms_what_is_committed_before_it_is_done():
    by_hand = ByHand(ScriptedSource(), committed_txid=5, metadata={5: "m"}, durability="replica")
    by_hand.handle(Resumed())
    assert by_hand.turn() == [AskBarrier(5, 0), AskForEnd()]
    assert by_hand.handle(EXHAUSTED) == []
    assert by_hand.handle(BarrierConfirmed(5, 0.0)) == []
    by_hand.turn()
    assert by_hand.handle(EXHAUSTED) == [Done()]


def test_a_new_topology_without_input_is_done_at_once():
    by_hand = ByHand(ScriptedSource(), durability="fsync")
    by_hand.handle(Resumed())
    assert by_hand.turn() == [AskForEnd()]
    assert by_hand.handle(EXHAUSTED) == [Done()]


def test_a_drained_run_is_not_done_before_everything_is_confirmed():
    assert committed_and_idle(InputState(is_draining=True))[1] == []


def test_an_end_that_no_barrier_confirms_is_an_error_after_the_timeout():
    by_hand, _ = committed_and_idle(EXHAUSTED)
    assert by_hand.handle(TimePassed(65.0)) == []
    error = halted(by_hand.handle(TimePassed(65.1)), NotDurableError)
    assert (error.level, error.committed_txid, error.confirmed_txid) == ("fsync", 1, 0)


# Bounds


def test_an_idle_run_whose_input_goes_on_waits_for_its_barrier_without_an_error():
    by_hand, _ = committed_and_idle(InputState())
    assert by_hand.handle(TimePassed(1_000.0)) == []


def test_a_caller_that_awaits_the_release_gets_an_error_after_the_timeout():
    by_hand, window = waiting(ScriptedSource(["yes"]), max_spout_pending=1)
    commit(by_hand, window[1])
    by_hand.handle(Turn(0.0, is_awaited=True))
    by_hand.handle(InputState())
    halted(by_hand.handle(TimePassed(61.0)), NotDurableError)


@pytest.fixture
def _narrow():
    with mock.patch.object(releases, "UNRELEASED_MAX", 2):
        yield


@pytest.mark.usefixtures("_narrow")
def test_commits_stop_when_as_much_is_unreleased_as_has_receipts_and_continue_once_it_is_confirmed():
    by_hand, window = waiting()
    commit(by_hand, window[1])
    commit(by_hand, window[2])
    by_hand.ack(window[3])
    assert not any(isinstance(decision, StartCommit) for decision in by_hand.turn(3.0))
    confirm(by_hand, 1, 4.0)
    assert StartCommit(1, (window[3],), composed=True) in by_hand.turn(4.0)
    assert by_hand.handle(TimePassed(63.5)) == []  # no longer blocked


@pytest.mark.usefixtures("_narrow")
def test_a_run_that_may_commit_nothing_more_ends_after_the_timeout_and_not_before():
    by_hand, window = waiting()
    commit(by_hand, window[1])
    commit(by_hand, window[2])
    assert by_hand.handle(TimePassed(500.0)) == []  # there is room, as far as it knows
    by_hand.ack(window[3])
    by_hand.turn(500.0)
    assert by_hand.handle(TimePassed(560.0)) == []
    halted(by_hand.handle(TimePassed(560.1)), NotDurableError)


@pytest.mark.usefixtures("_narrow")
def test_a_group_larger_than_the_bound_is_committed_alone():
    by_hand, window = waiting(commit_group_max=3)
    for attempt in window.values():
        by_hand.ack(attempt)
    assert StartCommit(1, tuple(window.values()), composed=True) in by_hand.turn()


# Errors of the spout's committer


def refusal():
    return SpoutNotified(UserCodeError(component_id="lines", attempt="1", traceback_text="drawn"))


def test_a_spout_that_cannot_be_told_ends_the_run_and_the_group_that_is_under_way_is_given_up():
    by_hand, window = waiting()
    commit(by_hand, window[1])
    by_hand.ack(window[2])
    assert StartCommit(1, (window[2],), composed=True) in by_hand.turn()
    by_hand.handle(BarrierConfirmed(1, 0.0))
    error = refusal()
    assert CancelWave(1) in by_hand.handle(error)
    assert by_hand.handle(GroupExecuted(1, (window[2],), ())) == []
    assert by_hand.turn() == [Halt(error.error)]


# Options
