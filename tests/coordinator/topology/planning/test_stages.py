"""Several tasks in one partition: how they are dealt, and what stays apart."""

from __future__ import annotations

import pytest

from tests.support.topologies.components import Commit, Pass, build, plan

TASKS = 24


def wide(ackers=1):
    """lines(1..24) -> count(25..48) -> store(49..72); ackers from 73."""
    bolts = ("count", Pass(), ["lines"], TASKS), ("store", Commit(), ["count"], TASKS)
    return plan(build(*bolts, spout_tasks=TASKS, ackers=ackers))


def partitions(made):
    return [stage.partitions for stage in made.stages]


def test_a_stage_has_no_more_partitions_than_slots_and_each_its_share_of_the_tasks():
    made = wide().in_slots(2)
    assert partitions(made)[0] == (tuple(range(1, 25, 2)), tuple(range(2, 25, 2)))
    assert [len(each) for each in partitions(made)] == [2, 2, 3]
    assert [sorted(sum(each, ())) for each in partitions(made)] == [sorted(stage.tasks) for stage in wide().stages]


def test_ackers_have_partitions_of_their_own():
    made = wide(ackers=3).in_slots(2)
    assert made.stages[2].partitions[:2] == ((73, 75), (74,))
    assert made.acker_partitions() == [0, 1]
    assert made.commit_partitions() == [2, 3]
    assert made.meeting_partitions(with_commit=True) == [0, 1, 2, 3]


def test_components_of_one_stage_are_spread_alike():
    made = plan(build(("a", Pass(), ["lines"], 4), ("b", Pass(), ["lines"], 4))).in_slots(2)
    assert made.stages[1].partitions == ((2, 4, 6, 8), (3, 5, 7, 9))


@pytest.mark.parametrize("slot_count", [None, 24, 100])
def test_with_slots_enough_every_task_has_a_partition_to_itself(slot_count):
    assert partitions(wide().in_slots(slot_count)) == partitions(wide())


def test_wirings_and_acker_do_not_depend_on_slots():
    made, few = wide(), wide().in_slots(2)
    assert (few.wirings, few.acker_tasks, few.commit_tasks) == (made.wirings, made.acker_tasks, made.commit_tasks)


def test_frames_go_to_the_partition_that_holds_their_task():
    made = wide().in_slots(2)
    assert made.chain.routes_into(1)[25] == 0
    assert made.chain.routes_into(1)[26] == 1
    assert made.chain.routes_into(2)[73] == 0
    assert made.chain.routes_into(2)[49] == 1


def test_with_one_slot_a_chain_of_many_tasks_needs_no_shuffle():
    bolts = ("count", Pass(), ["lines"], 4), ("store", Commit(), ["count"], 4)
    made = plan(build(*bolts, spout_tasks=4), is_chained=True)
    assert not made.is_one_partition()
    assert not made.in_slots(2).is_one_partition()
    assert made.in_slots(1).is_one_partition()
    assert not plan(build(*bolts, spout_tasks=4)).in_slots(1).is_one_partition()
