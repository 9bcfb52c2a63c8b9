"""What is known of every txid between the last committed one and the end of the window. Exact."""

from __future__ import annotations

from itertools import count

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.machine.transaction_record import AttemptState, TransactionRecord
from coordinator.transactional.machine.transaction_records import TransactionRecords
from state.attempt import TransactionAttempt
from state.errors import ProtocolError

WAITING, PROCESSING, PROCESSED, COMMITTING, PUBLISHING, SETTING_ASIDE, COMMITTED, DROPPED = AttemptState


def att(txid, attempt_id=None):
    return TransactionAttempt(txid, txid if attempt_id is None else attempt_id)


def records_of(stored=None, committed_txid=0, first_id=1):
    ids = count(first_id).__next__
    earlier = [TransactionRecord(txid, metadata) for txid, metadata in (stored or {}).items()]
    return TransactionRecords(earlier, committed_txid=committed_txid, new_attempt_id=ids)


def cut(*waves):
    """Records of txids from 1, processed in these waves; a txid in wave 0 waits."""
    records = records_of()
    for txid, wave_id in enumerate(waves, start=1):
        records.take_in(txid, f"cut {txid}", 0, {})
        if wave_id:
            record = records[txid]
            record.move(PROCESSING).wave_id = wave_id
            record.move(PROCESSED).outcome = AttemptResult(att(txid), residue=txid, metadata={"p": txid})
    return records


def state_of(records, *txids):
    return [None if (current := records.current_of(txid)) is None else current.state for txid in txids]


def test_what_was_stored_is_known_from_the_start_and_has_no_attempt():
    records = records_of({4: "four", 5: "five"}, committed_txid=4)
    assert (records.currtx, records.known(), records.last_txid()) == (5, [4, 5], 5)
    assert 4 in records
    assert 6 not in records
    assert list(records.active()) == []


def test_without_anything_stored_the_last_txid_is_the_committed_one():
    assert records_of(committed_txid=4).last_txid() == 4


def test_a_transaction_that_is_cut_gets_an_attempt_that_waits():
    records = records_of(first_id=9)
    records.take_in(1, "cut", 500, {})
    assert (records[1].metadata, records[1].byte_count, state_of(records, 1)) == ("cut", 500, [WAITING])
    assert [record.txid for record in records.waiting()] == [1]
    assert records.is_current(att(1, 9))


def test_one_that_is_cut_again_keeps_how_often_it_failed():
    records = cut(0)
    records[1].failure_count = 3
    records.drop_from(1, "failed")
    records.take_in(1, "cut again", 7, {})
    assert (records[1].metadata, records[1].byte_count, records[1].failure_count) == ("cut again", 7, 3)


@pytest.mark.parametrize(
    ("waves", "limit", "txids"),
    [
        ((1, 1, 1), 5, [1, 2, 3]),
        ((1, 1, 1), 2, [1, 2]),
        ((1, 1, 2), 5, [1, 2]),
        ((0, 1, 1), 5, []),
        ((1, 0, 1), 5, [1]),
        ((1,), 0, []),
        ((), 5, []),
    ],
)
def test_a_group_is_a_run_of_processed_attempts_from_currtx_within_one_wave(waves, limit, txids):
    assert [attempt.txid for attempt in cut(*waves).consecutive_processed(limit)] == txids


def test_outcomes_are_of_current_and_processed_attempts():
    records = cut(1, 0)
    assert records.outcomes([att(1), att(2), att(3)]) == {att(1): AttemptResult(att(1), residue=1, metadata={"p": 1})}
    assert records.positions() == {1: {"p": 1}}


def test_a_drop_takes_all_later_attempts_whatever_their_state_and_no_lower_one():
    records = cut(1, 1, 1, 0)
    records.move((att(1), att(2)), COMMITTING)
    assert [ended.attempt for ended in records.drop_from(2, "no")] == [att(2), att(3), att(4)]
    assert state_of(records, 1, 2, 3, 4) == [COMMITTING, None, None, None]
    assert records.known() == [1, 2, 3, 4], "metadata stays"
    assert records.positions() == {1: {"p": 1}}
    assert [records[txid].story()[-1][-13:] for txid in (2, 3)] == [": dropped: no", "txid 2 failed"]


def test_deferring_what_is_not_committing_changes_nothing():
    records = cut(0, 1)
    records.defer((att(1), att(2, 99), att(3)))
    assert state_of(records, 1, 2) == [WAITING, PROCESSED]


def publishing(*waves):
    records = cut(*waves)
    attempts = tuple(att(txid) for txid in range(1, 1 + len(waves)))
    records.move(attempts, COMMITTING)
    records.move(attempts, PUBLISHING)
    return records


def test_a_commit_moves_currtx_and_keeps_only_the_last_of_its_transactions():
    records = publishing(1, 1)
    assert [ended.attempt for ended in records.committed((att(1), att(2)))] == [att(1), att(2)]
    assert (records.currtx, records.known()) == (3, [2])
    assert list(records.active()) == []


def test_commits_are_acknowledged_in_order():
    records = publishing(1, 1)
    with pytest.raises(ProtocolError, match=r"attempt 2:0000000000000002 was committed, but txid 1 is next"):
        records.committed((att(2),))
    assert state_of(records, 1, 2) == [PUBLISHING, PUBLISHING]


# What `validate` finds


def check(records, window=3, *, is_contiguous=True):
    records.validate(window=window, is_contiguous=is_contiguous)


def test_records_as_they_should_be_are_fine():
    check(cut(1, 1, 0))
    check(records_of())
    check(records_of({4: "four", 5: "five"}, committed_txid=4))


def drop_one(records):
    records[2].move(DROPPED)


def forget_one(records):
    del records._records[2]
    records[3].current = None


def keep_too_much(records):
    records.currtx = 4
    for txid in (1, 2, 3):
        records[txid].current = None


def lose_the_outcome(records):
    records[1].current.outcome = None


def lose_the_wave(records):
    records[1].current.wave_id = 0


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (drop_one, r"a gap among active txids \[1, 3\]"),
        (forget_one, r"a hole in \[1, 3\]"),
        (keep_too_much, "a transaction was not forgotten"),
        (lose_the_outcome, "story: 1:0000000000000001: issued"),
        (lose_the_wave, "story: 1:0000000000000001: issued"),
    ],
)
def test_records_that_are_broken_are_found(breakage, message):
    records = cut(1, 1, 1)
    breakage(records)
    with pytest.raises(AssertionError, match=message):
        check(records)


def test_more_attempts_than_the_window_holds_are_found():
    with pytest.raises(AssertionError):
        check(cut(1, 1, 0), window=2)
