"""Each attempt of a run is counted once, by its outcome."""

from __future__ import annotations

import pytest

from coordinated_bolt.watching.metrics import TaskMetrics
from tests.support.watching.counted import Counted


@pytest.fixture
def run() -> Counted:
    made = Counted()
    made.starts(1.0, 1, 2, 3)
    return made


def test_attempts_that_only_waited_for_a_wave_have_not_failed(run):
    run.fails(2.0, 2, 3, 4)
    assert (run.statistics.attempts, run.statistics.failed_attempts) == (3, 2)
    assert run.statistics.failures == {"asked_for": 1, "lower_failed": 1}


def test_work_is_lost_whether_an_attempt_fails_before_or_after_its_wave_has_ended(run):
    run.fails(2.0, 3)
    run.ends(3.0, 1, 2, 3, tuple_count=2, metrics={"lines": TaskMetrics(executed={"lines": 1})})
    run.fails(4.0, 2)
    run.commits(5.0, 1, operation_count=5, letter_count=2, expired_count=1)
    figures = run.statistics
    assert (figures.committed, figures.last_txid, figures.tuples) == (1, 1, 2)
    assert (figures.changes, figures.dead_letters, figures.expired_parts) == (5, 2, 1)
    assert figures.failures == {"asked_for": 2}
    assert (figures.components["lines"].acked, figures.components["lines"].failed) == ({"lines": 1}, {"lines": 2})


def test_a_batch_that_is_set_aside_commits_nothing(run):
    run.commits(2.0, 1, is_set_aside=True)
    assert (run.statistics.committed, run.statistics.last_txid, run.statistics.quarantined) == (0, 1, [1])


@pytest.mark.parametrize(("txid", "letters"), [(2, 0), (0, 3)])
def test_what_was_republished_is_known_by_its_new_txid(run, txid, letters):
    run.ends(2.0, 1, 2, 3)
    run.commits(3.0, 1, republished_txid=txid, republished_letters=letters)
    assert (run.statistics.republished, run.statistics.republished_letters) == ({2: 1} if txid else {}, letters)
