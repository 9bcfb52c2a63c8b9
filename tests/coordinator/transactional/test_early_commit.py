"""The driver's loop when the commit phase of a wave has run in its own job: used, unusable, given up."""

from __future__ import annotations

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinator.transactional.engine import GroupExecuted
from state.commits.commit import CommitReply, CommitStatus
from tests.support.runs.answers import USER, committing_fails_at, everything, failing_at
from tests.support.runs.scripted import Run, failed
from tests.support.topologies.components import Commit, Count, Pass, build, plan

TWO_TASKS = plan(build(("count", Count(), ["lines"], 2)))


def early_run(transactions=0, *, window=4, **more):
    return Run(transactions, early_commit=True, max_spout_pending=window, **more)


def early_fails_at(run, txid, times=1, kind=FailureKind.FAILED, tasks=(2, 3)):
    """The commit phase fails at a txid, on these of two tasks."""
    left = [failed(kind)] * times

    def answer(wave_id, attempts, composed):
        is_meant = left and txid in [attempt.txid for attempt in attempts]
        bad = run.engine.executed(wave_id, attempts, composed, **({f"at_{txid}": left.pop()} if is_meant else {}))
        good = run.engine.executed(wave_id, attempts, composed)
        reports = (b if b.task_id in tasks else g for b, g in zip(bad.reports, good.reports, strict=True))
        return GroupExecuted(wave_id, attempts, tuple(reports))

    return answer


# Used


def test_a_wave_takes_one_job_and_the_next_one_runs_while_it_is_published():
    run = early_run(5)
    run()
    assert run.story() == (
        "store coordinator:1 coordinator:2 coordinator:3 coordinator:4; process 1 [1, 2]; early [1, 2]; "
        "process 2 [3, 4]; early [3, 4]; publish [1, 2]; release 1; store coordinator:5; process 3 [5]; early [5]; "
        "publish [3, 4]; release 2; publish [5]; release 3"
    )
    assert run.store.states == everything(5)
    assert run.progress[-1] == (5, 0)


def test_the_statistics_are_those_of_the_general_way():
    early, general = early_run(5), Run(5, max_spout_pending=4)
    assert early.coordinator.run().to_dict("test") == general.coordinator.run().to_dict("test")


def test_groups_smaller_than_a_wave_are_reported_one_by_one():
    run = early_run(5, window=16, commit_group_max=2)
    run()
    reported = "early [1, 2] [3, 4] [5]; publish [1, 2]; publish [3, 4]; publish [5]"
    assert run.story("early", "commit", "publish") == reported


# Not used


@pytest.mark.parametrize(
    "bolts",
    [
        [("pass", Pass(), ["lines"])],
        [("commit", Commit(), ["lines"]), ("below", Pass(), ["commit"])],
        [("commit", Commit(), ["lines"]), ("count", Count(), ["commit"])],
    ],
    ids=["no committer", "a bolt below a committer", "a committer below a committer"],
)
def test_other_commit_phases_than_one_level_go_the_general_way(bolts):
    run = early_run(2, made_of=plan(build(*bolts)))
    run()
    assert run.lines("early") == []
    assert run.committed() == [[1, 2]]


@pytest.mark.parametrize(
    ("tasks", "head"),
    [
        ((2, 3), "publish [1, 2]; process 2 [3, 4]; publish [3, 4]"),
        ((2,), "commit 1 [1, 2]; process 2 [3, 4]; publish [1, 2]; publish [3, 4]"),
    ],
    ids=["on every task", "on one task"],
)
def test_a_committer_that_fails_leaves_a_head_that_is_used_or_run_again_if_tasks_differ(tasks, head):
    run = early_run(4, window=8, made_of=TWO_TASKS)
    run.engine.on_early = early_fails_at(run, 3, tasks=tasks)
    run()
    assert run.story("process", "commit", "publish") == f"process 1 [1, 2, 3, 4]; {head}"


def test_an_exception_of_a_committer_that_was_given_a_failed_attempt_does_not_halt():
    """It has seen part of a batch only."""
    run = early_run(4, window=8)
    run.engine.on_wave = failing_at(run, 3)
    run.engine.on_early = early_fails_at(run, 3, kind=USER)
    run()
    assert run.store.states == everything(4)


# Learned


# The store's answers


@pytest.mark.parametrize(
    ("options", "group", "later"),
    [
        ({"window": 12, "commit_group_max": 3}, "[1, 2, 3]", "publish [4, 5, 6]"),
        ({"window": 8}, "[1, 2, 3, 4]", "commit 1 [4]; publish [4]; publish [5, 6]"),
    ],
    ids=["one of several groups", "the whole wave"],
)
def test_a_refused_group_is_tried_one_by_one_the_general_way_and_no_other_group_is(options, group, later):
    run = early_run(6, **options)
    run.store.replies = [CommitReply(CommitStatus.LIMIT, "too many")]
    run()
    one_by_one = "commit 1 [1]; publish [1]; commit 1 [2, 3]; publish [2, 3]"
    assert run.story("commit", "publish") == f"publish {group}; {one_by_one}; {later}"
    assert run.store.states == everything(6)


def test_a_commit_phase_that_fails_in_a_job_of_its_own_voids_the_wave_that_was_run_early_meanwhile():
    run = early_run(4, made_of=TWO_TASKS)
    run.engine.on_early = early_fails_at(run, 2, tasks=(2,))
    run.engine.on_group = committing_fails_at(run, 1)
    run()
    assert run.store.states == {"counts": {f"tx{txid}": 2 for txid in range(1, 5)}}
    assert [txid for txids in run.committed() for txid in txids] == [1, 2, 3, 4]
