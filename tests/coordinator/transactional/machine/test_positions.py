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


def test_batches_that_follow_one_another_are_accepted():
    wave = [outcome(4, 30, 40), outcome(5, 40, 40), outcome(6, 40, 50)]
    assert list(chained(wave, {P: {2: 20, 3: 30}})) == wave


LOST = AttemptResult(TransactionAttempt(4, 104), Failure(FailureKind.INCOMPLETE, "lines", 0, "no verdict"))
UNLINKED = AttemptResult(TransactionAttempt(1, 1), metadata={P: 10})
CASES = {
    "the first batch of a partition begins from nothing": ([outcome(1, None, 10)], {}, []),
    "the first batch of a partition begins nowhere else": ([outcome(1, 0, 10)], {}, [1]),
    # the acker of txid 4 has read one execution, that of txid 5 another, in which row 39 belongs to txid 5
    "two executions that cut differently do not both count": (
        [outcome(4, 30, 40), outcome(5, 39, 40)],
        {P: {3: 30}},
        [5],
    ),
    "one that begins elsewhere than the wave below has ended": ([outcome(4, 29, 40)], {P: {3: 30}}, [4]),
    "what is known of later transactions is not below": ([outcome(4, 30, 40)], {P: {3: 30, 7: 70}}, []),
    "partitions are chains of their own": (
        [outcome(4, 30, 40), outcome(5, None, 3, scope="partition.1"), outcome(6, 40, 41)],
        {P: {3: 30}},
        [],
    ),
    "one that does not tell where it began is not trusted": ([UNLINKED], {}, [1]),
    "what follows a failure is replayed anyway and is not blamed": ([LOST, outcome(5, 40, 50)], {P: {3: 30}}, [4]),
}


@pytest.mark.parametrize("case", CASES)
def test_batches_that_do_not_follow_those_below_them_are_replayed(case):
    outcomes, known, failed = CASES[case]
    assert [each.attempt.txid for each in chained(outcomes, known) if each.failure is not None] == failed


@pytest.mark.parametrize("kind", list(FailureKind), ids=lambda kind: kind.name)
def test_a_failure_stays_what_it_was(kind):
    wave = [outcome(1, 5, 10, failure=Failure(kind, "lines", 0, "no"))]
    assert list(chained(wave, {})) == wave
