"""A seed is one schedule: the same in every process, and many together meet all that may go wrong."""

from __future__ import annotations

import pytest

from coordinator.proving.forked import in_a_copy
from coordinator.proving.schedule import BY_STAGES, OTHER_ORDER, OTHER_TASKS, Played, Schedule
from coordinator.proving.stage_play import StagePlay
from coordinator.proving.tuple_play import play_by_tuples
from coordinator.testing.simulated.fault_plan import Strike
from tests.support.faulty_topologies import words

SEEDS = 60


def played(schedule: Schedule) -> Played:
    if schedule.is_by_stages:
        return in_a_copy(lambda: StagePlay(words(), schedule, 4).play())
    return in_a_copy(lambda: play_by_tuples(words(), schedule, 4))


def test_a_seed_is_the_same_schedule_again_and_so_are_its_faults_alone() -> None:
    for seed in range(4):
        schedule = Schedule(seed)
        once = played(schedule)
        assert played(schedule) == once
        assert played(schedule.with_faults(once.struck)) == once


@pytest.mark.nightly
def test_schedules_together_meet_every_kind_of_fault() -> None:
    struck = {strike.fault for seed in range(SEEDS) for strike in played(Schedule(seed)).struck}
    kinds = {fault.partition("@")[0] for fault in BY_STAGES} | {OTHER_ORDER}
    assert {fault.partition("@")[0] for fault in struck} == kinds


def test_tasks_that_are_kept_never_change() -> None:
    schedules = [Schedule(seed, keeps_tasks=True) for seed in range(10)]
    assert all(strike.fault != OTHER_TASKS for each in schedules for strike in played(each).struck)


def test_another_order_is_played_tuple_by_tuple_whatever_the_seed() -> None:
    schedules = [Schedule(seed, exactly=frozenset({Strike(OTHER_ORDER, 0)})) for seed in range(5)]
    assert not any(each.is_by_stages for each in schedules)
    assert [played(each).story[1] for each in schedules] == ["tuples of different tasks come in another order"] * 5
