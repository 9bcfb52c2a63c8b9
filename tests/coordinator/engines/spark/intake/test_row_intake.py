"""What the driver makes of the sums that tasks report of the rows they read, without Spark."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.engines.spark.intake.row_intake import DIGEST_SCOPE, HASH_SUM, ROW_COUNT, Role, RoleRows, RowIntake
from coordinator.engines.waves.stage import WaveInput
from coordinator.spouts.batch import Batch
from coordinator.transactional.engine import WaveProcessed
from state.attempt import TransactionAttempt
from state.codec import pack
from state.errors import SourceError

ATTEMPT = TransactionAttempt(5, 77)


def checked(outcome, *, stored=None, expected=lambda metadata: metadata):
    """What becomes of an attempt whose transaction is said to have ten rows."""
    wave = WaveInput(1, (Batch(ATTEMPT, pack(10)),), {} if stored is None else {DIGEST_SCOPE: {5: stored}})
    intake = RowIntake(("id",), lambda metadata: None, expected)  # type: ignore[arg-type, return-value]
    (found,) = intake.checked(wave, WaveProcessed(1, (outcome,))).outcomes
    return found


def read(rows, hash_sum):
    return AttemptResult(ATTEMPT, counters=Counter({ROW_COUNT: rows, HASH_SUM: hash_sum, "mine": 3}))


def test_what_is_read_first_is_stored_and_no_counter_of_ours_is_shown():
    found = checked(read(10, -4))
    assert found.failure is None
    assert found.metadata == {DIGEST_SCOPE: [10, 2**64 - 4]}
    assert found.counters == Counter(mine=3)


def test_the_same_rows_may_be_spread_over_tasks_in_another_way():
    assert checked(read(10, 2**64 - 4), stored=[10, 2**64 - 4]).failure is None


@pytest.mark.parametrize(
    ("outcome", "stored", "told"),
    [
        (read(11, 4), None, "it had 10 rows when it was cut and has 11 now"),
        (read(10, 5), [10, 4], "it had 10 rows when it was read first, and has others now"),
    ],
)
def test_other_rows_end_the_run(outcome, stored, told):
    found = checked(outcome, stored=stored)
    assert found.failure is not None
    assert found.failure.kind is FailureKind.SOURCE
    assert told in found.failure.text
    assert found.metadata == {}


def test_an_attempt_that_failed_keeps_its_own_reason():
    failure = Failure(FailureKind.FAILED, "bolt", 0, "asked for")
    outcome = AttemptResult(ATTEMPT, failure, counters=Counter({ROW_COUNT: 3}))
    assert checked(outcome).failure is failure


def test_rows_whose_number_nobody_knows_beforehand_are_compared_by_digest_alone():
    assert checked(read(3, 1), expected=lambda metadata: None).metadata == {DIGEST_SCOPE: [3, 1]}


def test_rows_of_the_moment_are_compared_with_nothing():
    wave = WaveInput(1, (Batch(ATTEMPT, pack(10)),))
    processed = WaveProcessed(1, (AttemptResult(ATTEMPT),))
    intake = RowIntake(("id",), lambda metadata: None)  # type: ignore[arg-type, return-value]
    assert intake.checked(wave, processed) is processed


def test_a_task_adds_up_hashes_whatever_their_sign_and_number():
    rows = RoleRows(Role(0, 1, (None, None)), [("a", 2**63 - 1), ("b", 2**63 - 1), ("c", -5)], is_tallied=True)
    assert list(rows) == [["a"], ["b"], ["c"]]
    assert rows.tally() == {ROW_COUNT: 3, HASH_SUM: -7}


def test_a_task_whose_rows_cannot_be_had_says_why():
    with pytest.raises(SourceError, match="no such column"):
        list(RoleRows(Role(0, 1, fault="no such column"), [("a",)], is_tallied=True))


def test_a_task_without_rows_reads_nothing_of_its_partition():
    assert list(RoleRows(Role(0, 1), [("a",)], is_tallied=False)) == []
