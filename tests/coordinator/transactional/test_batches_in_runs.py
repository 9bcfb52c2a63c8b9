"""Whole runs of random topologies: whether bolts take tuples or batches, and emit rows or columns, changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from state.commits.commit import Commit, CommitReply
from tests.support.runs.whole_runs import run
from tests.support.scenarios.chained_topologies import chained_scenario
from tests.support.scenarios.playing import play as play_in_process
from tests.support.scenarios.random_bolts import Behaving, LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario, random_scenario, with_batches
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import plan

EXAMPLES = int(os.environ.get("TXBATCH_RANDOM_EXAMPLES", "100"))

randoms = st.randoms(use_true_random=False)
drawn_at_length = settings(
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 100,
    database=None,
)


class WritingStore(MemoryStore):
    """Keeps what every commit asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[tuple[Any, ...]] = []

    def commit(self, commit: Commit) -> CommitReply:
        self.commits.append((commit.attempts, deepcopy(commit.write_set), dict(commit.metadata)))
        return super().commit(commit)


@dataclass
class Played:
    """What a run has left.

    Attributes:
        received: (component, task, attempt) -> the tuples that the task had when it finished, in any order.
    """

    store: WritingStore
    received: dict[tuple[str, int, str], list[Any]] = field(default_factory=dict)
    failed_attempts: int = 0
    counts: dict[str, Any] = field(default_factory=dict)


@contextmanager
def watched(received: dict[tuple[str, int, str], list[Any]]) -> Iterator[None]:
    finish_batch = Behaving.finish_batch

    def watching(self):
        received[self.context.component_id, self.context.task_index, str(self.attempt)] = sorted(self.rows)
        finish_batch(self)

    with mock.patch.object(Behaving, "finish_batch", watching):
        yield


def play(scenario: Scenario, *, is_chained: bool) -> Played:
    topology = topology_of(scenario, LocalTally("batches"))
    made = plan(topology, is_chained=is_chained)
    if made.is_one_partition():
        topology = topology_of(replace(scenario, trips=()), LocalTally("batches"))  # its waves may run twice
        made = plan(topology, is_chained=is_chained)
    played = Played(WritingStore())
    with watched(played.received):
        coordinator = run(
            topology,
            played.store,
            made=made,
            seed=scenario.seed,
            max_spout_pending=scenario.window,
            commit_group_max=scenario.group,
            commit_operations_max=scenario.operations_max,
        )
    played.failed_attempts = coordinator.statistics.failed_attempts
    for name, found in coordinator.statistics.components.items():
        played.counts[name] = {k: v for k, v in found.to_dict().items() if not k.endswith("_ns")}
    return played


@pytest.mark.timeout(1800)
@drawn_at_length
@given(randoms, st.booleans())
def test_batches_change_neither_state_nor_counts_nor_choice_of_task(random: Random, is_chained: bool):
    scenario = chained_scenario(random)
    rows = play(scenario, is_chained=is_chained)
    mixed = play(with_batches(scenario, random), is_chained=is_chained)
    assert mixed.received == rows.received
    assert mixed.store.commits == rows.store.commits
    assert mixed.store.states == rows.store.states
    assert mixed.failed_attempts == rows.failed_attempts
    assert mixed.counts == rows.counts
    event(f"failed attempts: {min(rows.failed_attempts, 5)}")


@pytest.mark.timeout(1800)
@drawn_at_length
@given(randoms)
def test_on_the_local_cluster_batches_commit_what_the_fold_says_under_every_fault(random: Random):
    play_in_process(with_batches(random_scenario(random), random))
