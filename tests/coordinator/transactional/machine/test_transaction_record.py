"""The states of an attempt: every transition there is, and none else. Exact."""

from __future__ import annotations

from itertools import product

import pytest

from coordinator.transactional.machine.transaction_record import (
    STORY_LENGTH,
    ActiveAttempt,
    AttemptState,
    TransactionRecord,
)
from state.attempt import TransactionAttempt
from state.errors import ProtocolError

WAITING, PROCESSING, PROCESSED, COMMITTING, PUBLISHING, SETTING_ASIDE, COMMITTED, DROPPED = AttemptState

LEGAL = {
    WAITING: {PROCESSING, SETTING_ASIDE, DROPPED},
    PROCESSING: {PROCESSED, DROPPED},
    PROCESSED: {COMMITTING, DROPPED},
    COMMITTING: {PROCESSED, PUBLISHING, DROPPED},
    PUBLISHING: {PROCESSED, COMMITTED},
    SETTING_ASIDE: {WAITING, COMMITTED},
    COMMITTED: set(),
    DROPPED: set(),
}


def record_in(state):
    record = TransactionRecord(7, "cut")
    record.issue(3)
    assert record.current is not None
    record.current.state = state
    return record


@pytest.mark.parametrize(("before", "after"), list(product(AttemptState, repeat=2)), ids=lambda state: state.value)
def test_an_attempt_goes_where_it_may_and_nowhere_else(before, after):
    record = record_in(before)
    if after in LEGAL[before]:
        assert record.move(after).state is after
    else:
        with pytest.raises(ProtocolError, match=f"txid 7 cannot go from {before.value} to {after.value}"):
            record.move(after)
        assert record.current == ActiveAttempt(TransactionAttempt(7, 3), before), "nothing was touched"


@pytest.mark.parametrize("end", [COMMITTED, DROPPED])
def test_an_attempt_that_has_ended_is_current_no_more(end):
    record = record_in(PUBLISHING if end is COMMITTED else PROCESSING)
    ended = record.move(end)
    assert ended.attempt == TransactionAttempt(7, 3)
    assert record.current is None
    with pytest.raises(ProtocolError, match="txid 7 cannot go from no attempt to processed"):
        record.move(PROCESSED)


def test_a_new_attempt_waits_in_no_wave():
    record = TransactionRecord(7, "cut")
    record.issue(5)
    assert record.current == ActiveAttempt(TransactionAttempt(7, 5), WAITING, 0, None)


def test_a_transaction_has_one_attempt_at_a_time():
    record = record_in(WAITING)
    with pytest.raises(AssertionError, match="txid 7 has an attempt"):
        record.issue(4)


def test_the_story_is_told_over_all_attempts_oldest_first():
    record = TransactionRecord(7, "cut")
    assert record.story_line() == "story: nothing happened yet"
    record.issue(1)
    record.move(DROPPED, "txid 6 failed")
    record.issue(2)
    record.move(PROCESSING, "wave 4")
    assert record.story() == [
        "7:0000000000000001: issued",
        "7:0000000000000001: dropped: txid 6 failed",
        "7:0000000000000002: issued",
        "7:0000000000000002: processing: wave 4",
    ]
    assert record.story_line() == "story: " + "; ".join(record.story())


def test_the_story_is_bounded():
    record = TransactionRecord(7, "cut")
    for attempt_id in range(100):
        record.issue(attempt_id)
        record.move(DROPPED)
    assert len(record.story()) == STORY_LENGTH
    assert record.story()[-1] == "7:0000000000000063: dropped"
