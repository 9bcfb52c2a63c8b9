"""Whole runs of random topologies: whether bolts take tuples or batches, and emit rows or columns, changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.support.runs.scenario_runs import WritingStore, counts_of, drawn_at_length, run_scenario
from tests.support.scenarios.chained_topologies import chained_scenario
from tests.support.scenarios.playing import play as play_in_process
from tests.support.scenarios.random_bolts import Behaving, LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario, random_scenario, with_batches
from tests.support.topologies.components import plan

randoms = st.randoms(use_true_random=False)


@contextmanager
def watched(received: dict[tuple[str, int, str], list[Any]]) -> Iterator[None]:
    """Keeps (component, task, attempt) -> the tuples that the task had when it finished, in any order."""
    finish_batch = Behaving.finish_batch

    def watching(self):
        received[self.context.component_id, self.context.task_index, str(self.attempt)] = sorted(self.rows)
        finish_batch(self)

    with mock.patch.object(Behaving, "finish_batch", watching):
        yield


def play(scenario: Scenario, *, is_chained: bool) -> dict[str, Any]:
    """What a run has left."""
    topology = topology_of(scenario, LocalTally("batches"))
    made = plan(topology, is_chained=is_chained)
    if made.is_one_partition():
        topology = topology_of(replace(scenario, trips=()), LocalTally("batches"))  # its waves may run twice
        made = plan(topology, is_chained=is_chained)
    store, received = WritingStore(), dict[tuple[str, int, str], list[Any]]()
    with watched(received):
        coordinator = run_scenario(scenario, topology, store, made)
    failed_attempts = coordinator.statistics.failed_attempts
    event(f"failed attempts: {min(failed_attempts, 5)}")
    left = {"received": received, "commits": store.commits, "states": store.states}
    return {**left, "failed attempts": failed_attempts, "counts": counts_of(coordinator)}


@pytest.mark.timeout(1800)
@drawn_at_length(100)
@given(randoms, st.booleans())
def test_batches_change_neither_state_nor_counts_nor_choice_of_task(random: Random, is_chained: bool):
    scenario = chained_scenario(random)
    rows = play(scenario, is_chained=is_chained)
    assert play(with_batches(scenario, random), is_chained=is_chained) == rows


@pytest.mark.timeout(1800)
@drawn_at_length(100)
@given(randoms)
def test_on_the_local_cluster_batches_commit_what_the_fold_says_under_every_fault(random: Random):
    play_in_process(with_batches(random_scenario(random), random))
