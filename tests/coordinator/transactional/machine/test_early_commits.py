"""Which groups of a wave run early, what is kept of them, and when a run stops trying. Exact."""

from __future__ import annotations

import pytest

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult, ResultTable
from coordinator.transactional.engine import EarlyCommit, GroupExecuted
from coordinator.transactional.machine.early_commits import WASTED_MAX, EarlyCommits
from state.attempt import TransactionAttempt


def attempts_of(*txids, attempt_id=1):
    return tuple(TransactionAttempt(txid, attempt_id) for txid in txids)


def group(*txids, reads=(), attempt_id=1):
    attempts = attempts_of(*txids, attempt_id=attempt_id)
    return GroupExecuted(
        1, attempts, (TaskReport(3, "count", ResultTable([AttemptResult(attempts[0], reads=list(reads))])),)
    )


@pytest.mark.parametrize(
    ("count", "limit", "sizes"),
    [(32, 64, [32]), (64, 64, [64]), (64, 63, [32, 32]), (7, 3, [3, 3, 1]), (10, 6, [5, 5]), (3, 1, [1, 1, 1])],
)
def test_a_wave_is_cut_into_few_groups_of_equal_size_within_the_limit(count, limit, sizes):
    early = EarlyCommits(is_on=True)
    attempts = attempts_of(*range(5, 5 + count))
    planned = early.plan(attempts, limit, composed=False)
    assert [len(each) for each in planned.groups] == sizes
    assert sum(planned.groups, ()) == attempts
    assert planned.composed is False


def test_nothing_runs_early_when_it_is_off():
    assert EarlyCommits(is_on=False).plan(attempts_of(1, 2), 64, composed=True) == EarlyCommit()


def test_a_group_is_taken_once_and_by_exactly_its_attempts():
    early = EarlyCommits(is_on=True)
    kept = group(1, 2)
    early.keep([kept])
    assert early.take(attempts_of(1, 2)) is kept
    assert early.take(attempts_of(1, 2)) is None


@pytest.mark.parametrize("asked", [attempts_of(1), attempts_of(1, 2, 3), attempts_of(1, 2, attempt_id=2)])
def test_other_attempts_than_those_of_the_group_get_nothing(asked):
    early = EarlyCommits(is_on=True)
    early.keep([group(1, 2)])
    assert early.take(asked) is None


def test_a_commit_takes_what_was_run_early_or_ends_before_it():
    early = EarlyCommits(is_on=True)
    early.keep([group(3, 4, 5), group(6, 7)])
    assert early.limit(3, 2) == 3  # its operations are known to the decision, an estimate is not needed
    assert early.limit(1, 64) == 2
    assert early.limit(1, 1) == 1
    assert early.limit(6, 64) == 2
    assert early.limit(8, 64) == 64


def test_a_void_attempt_takes_its_group_with_it():
    early = EarlyCommits(is_on=True)
    early.keep([group(1, 2), group(3, 4)])
    early.forget_all_but(lambda attempt: attempt.txid != 4)
    assert early.take(attempts_of(3, 4)) is None
    assert early.take(attempts_of(1, 2)) is not None


def test_a_read_ends_it_for_the_run_and_nothing_of_the_wave_is_used():
    early = EarlyCommits(is_on=True)
    early.keep([group(1, 2), group(3, 4, reads=[["counts", "a"]]), group(5, 6)])
    assert [early.take(attempts_of(first, first + 1)) for first in (1, 3, 5)] == [None, None, None]
    assert not early.is_on


def test_groups_that_have_to_be_run_again_end_it_unless_as_many_were_of_use():
    early = EarlyCommits(is_on=True)
    on = []
    for is_wasted in [*[True] * 8, False, *[True] * 9]:
        early.settled(is_wasted=is_wasted)
        on.append(early.is_on)
    assert on == [True] * 17 + [False]
    assert WASTED_MAX == 16


def test_use_is_not_saved_up_against_waste():
    early = EarlyCommits(is_on=True)
    for is_wasted in [False] * 100 + [True] * WASTED_MAX:
        early.settled(is_wasted=is_wasted)
    assert not early.is_on
