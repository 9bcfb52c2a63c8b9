"""Sub-topologies over the real stages of plain waves: whatever frames are lost or doubled, acks tell the truth."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.runs.in_process_plain_engine import InProcessPlainEngine
from tests.support.topologies.batch_components import Diary, Outside, square_builder
from tests.support.topologies.plain_jobs import coordinator_of, planned, with_small_frames

REQUESTS = {"two": 2, "ten": 10, "one": 1, "none": 0}
SQUARES = {("none", 0), ("one", 1), ("ten", 100), ("two", 4)}
TOTAL_TASKS = 3


@pytest.fixture(autouse=True)
def _empty_diary():
    Diary.entries.clear()


def got():
    return [entry[1:] for entry in Diary.of("got")]


def acked():
    return [entry[1] for entry in Diary.of("acked")]


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("master_tasks", [1, 3])
def test_all_requests_of_a_wave_are_squared_and_acked(master_tasks):
    plan = planned(square_builder(REQUESTS, master_tasks=master_tasks, outside=Outside()).build())
    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()
    assert (sorted(got()), sorted(acked())) == (sorted(SQUARES), sorted(REQUESTS))
    assert (statistics.waves, statistics.failed) == (1, 0)
    assert len(Diary.of("prepare")) == len(Diary.of("cleanup")) == len(REQUESTS) * (1 + 3 + 3 + TOTAL_TASKS)


@pytest.mark.case(id="G4")
def test_a_batch_that_fails_is_a_failed_request_and_its_replay_another_batch_of_the_next_wave():
    failing = {"total": {"finish:ten": 1}, "spread": {"execute:two": 1}}
    plan = planned(square_builder(REQUESTS, failing=failing, replay=True, outside=Outside()).build())
    statistics = coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()
    assert sorted(got()) == sorted(SQUARES)
    assert acked() == ["one", "none", "two", "ten"]
    assert (statistics.waves, statistics.failed) == (2, 2)
    batches = [entry[3] for entry in Diary.of("prepare") if entry[1] == "master"]
    assert len(set(batches)) == len(batches) == len(REQUESTS) + 2


@pytest.mark.case(id="P-07")
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_lost_and_doubled_frames_delay_acks_and_never_make_them_lie(seed, mischief, master_tasks, ackers):
    Diary.entries.clear()
    random, left = Random(seed), mischief

    def fault(_task_id, frames, _wave):
        nonlocal left
        given = []
        for frame in frames:
            is_hit = left > 0 and random.random() < 0.05
            left -= is_hit
            given += [frame] * (random.choice([0, 2]) if is_hit else 1)
        return given

    builder = square_builder(REQUESTS, replay=True, master_tasks=master_tasks, ackers=ackers, outside=Outside())
    plan = with_small_frames(planned(builder.build()))
    coordinator_of(plan, InProcessPlainEngine(plan, Random(seed), frame_fault=fault), seed=seed).run()
    assert sorted(acked()) == sorted(REQUESTS)
    assert set(got()) == SQUARES
    for place, entry in enumerate(Diary.entries):
        if entry[0] == "acked":
            assert ("got", entry[1], REQUESTS[entry[1]] ** 2) in Diary.entries[:place]
    assert len(Diary.of("prepare")) == len(Diary.of("cleanup"))


def test_a_stage_that_is_computed_again_does_the_same_again():
    found = []
    for _ in range(2):
        Diary.entries.clear()
        plan = planned(square_builder(REQUESTS, master_tasks=3).build())
        coordinator_of(plan, InProcessPlainEngine(plan, Random(1))).run()
        found.append(list(Diary.entries))
    assert found[0] == found[1]
