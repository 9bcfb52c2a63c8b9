"""The batches of a wave follow one another in every partition, or those that do not are replayed."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.partition_cut import link_to
from coordinator.transactional.machine.positions import chained
from state.attempt import TransactionAttempt

P = "partition.0"


def outcome(txid, last, position, scope=P, failure=None):
    """A batch of one partition, from `last` to `position`."""
    attempt = TransactionAttempt(txid, 100 + txid)
    return AttemptResult(attempt, failure, metadata={scope: position}, began_from={scope: link_to(last)})


def failed(outcomes, known=()):
    return [o.attempt.txid for o in chained(outcomes, dict(known)) if o.failure is not None]


def test_batches_that_follow_one_another_are_accepted():
    wave = [outcome(4, 30, 40), outcome(5, 40, 40), outcome(6, 40, 50)]
    assert list(chained(wave, {P: {2: 20, 3: 30}})) == wave


def test_the_first_batch_of_a_partition_begins_from_nothing():
    assert failed([outcome(1, None, 10)]) == []
    assert failed([outcome(1, 0, 10)]) == [1]


def test_two_executions_of_an_emitter_that_cut_differently_do_not_both_count():
    """The acker of txid 4 has read one execution, that of txid 5 another, in which row 39 belongs to txid 5."""
    assert failed([outcome(4, 30, 40), outcome(5, 39, 40)], {P: {3: 30}}) == [5]


def test_a_batch_that_begins_elsewhere_than_the_wave_below_has_ended_is_replayed():
    assert failed([outcome(4, 29, 40)], {P: {3: 30}}) == [4]


def test_what_is_known_of_later_transactions_is_not_below():
    assert failed([outcome(4, 30, 40)], {P: {3: 30, 7: 70}}) == []


def test_partitions_are_chains_of_their_own():
    wave = [outcome(4, 30, 40), outcome(5, None, 3, scope="partition.1"), outcome(6, 40, 41)]
    assert failed(wave, {P: {3: 30}}) == []


def test_a_batch_that_does_not_tell_where_it_began_is_not_trusted():
    assert failed([AttemptResult(TransactionAttempt(1, 1), metadata={P: 10})]) == [1]


def test_what_follows_a_failure_is_replayed_anyway_and_is_not_blamed():
    lost = AttemptResult(TransactionAttempt(4, 104), Failure(FailureKind.INCOMPLETE, "lines", 0, "no verdict"))
    assert failed([lost, outcome(5, 40, 50)], {P: {3: 30}}) == [4]


@pytest.mark.parametrize("kind", list(FailureKind), ids=lambda kind: kind.name)
def test_a_failure_stays_what_it_was(kind):
    wave = [outcome(1, 5, 10, failure=Failure(kind, "lines", 0, "no"))]
    assert list(chained(wave, {})) == wave
