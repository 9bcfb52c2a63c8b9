"""Chains change where tasks run, and nothing they do: random topologies, chained and not.

Two comparisons. Against the same wirings run task by task, with frames between all of them, everything is equal:
what each task is given and in which order, what is committed, by which attempts and in which groups, what failed, and
the metrics. Against the topology without chains, what is committed is equal; which task is given a tuple may differ
where the grouping leaves that open.

The same comparison shows that slots change nothing: whether tasks share a partition is not seen by any of them.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinator.engines.waves import shares
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import Plan
from state.attempt import TransactionAttempt
from state.commits.commit import Commit, CommitReply
from tests.support.runs.whole_runs import RandomFaults, run
from tests.support.scenarios.chained_topologies import chained_scenario
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario
from tests.support.scenarios.reference_fold import fold
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import plan

EXAMPLES = int(os.environ.get("TXBATCH_RANDOM_EXAMPLES", "150"))

scenarios = st.randoms(use_true_random=False).map(chained_scenario)
drawn_at_length = settings(
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 150,
    database=None,
)

Executed = list[tuple[str, int, str, list[Any]]]
"""What one bolt was given, in order: source, task of the source, stream, values."""
Given = dict[tuple[str, int, TransactionAttempt], dict[BatchBoltExecutor, Executed]]
"""(component, task index, attempt) -> what each execution of the task gave the attempt's bolt."""


class WritingStore(MemoryStore):
    """Keeps what every commit asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[tuple[Any, ...]] = []

    def commit(self, commit: Commit) -> CommitReply:
        self.commits.append((commit.attempts, commit.write_set.to_wire(), dict(commit.metadata), commit.forget))
        return super().commit(commit)


@dataclass
class Played:
    """What a run has left."""

    store: WritingStore
    given: Given = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    failed_attempts: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)


def play(scenario: Scenario, made: Plan, topology: Topology, *, fault_budget: int = 0) -> Played:
    played = Played(WritingStore())
    with watched(played.given):
        coordinator = run(
            topology,
            played.store,
            made=made,
            seed=scenario.seed,
            fault=RandomFaults(Random(scenario.seed), fault_budget),
            max_spout_pending=scenario.window,
            commit_group_max=scenario.group,
            commit_operations_max=scenario.operations_max,
        )
    played.failed_attempts = coordinator.statistics.failed_attempts
    played.metrics = {name: counts_of(found) for name, found in coordinator.statistics.components.items()}
    return played


def told_apart(given: Given, scenario: Scenario) -> dict[tuple[str, int, TransactionAttempt], list[Executed]]:
    """What each task was given, however often: a wave that needs no shuffle runs again for a second job.

    What a bolt that fails is still given is left out: in a chain it is nothing, in a frame what the frame holds.
    """
    failing = {(trip.component_id, trip.task_index, trip.txid) for trip in scenario.trips}
    found: dict[tuple[str, int, TransactionAttempt], list[Executed]] = {}
    for key, executions in given.items():
        if (key[0], key[1], key[2].txid) in failing:
            continue
        for executed in executions.values():
            if executed not in found.setdefault(key, []):
                found[key].append(executed)
    return found


def counts_of(found: Any) -> dict[str, Any]:
    return {name: value for name, value in found.to_dict().items() if not name.endswith("_ns")}


@contextmanager
def watched(seen: Given) -> Iterator[None]:
    """Keeps what bolts are given."""
    execute = BatchBoltExecutor.execute

    def watching(self, attempt, stretches):
        key = (self._wiring.component_id, self._wiring.task_index, attempt)
        for origin, rows in stretches:
            source = (origin.source_component, origin.source_task, origin.stream_id)
            seen[key][self] += [(*source, deepcopy(row)) for row in rows]
        return execute(self, attempt, stretches)

    with mock.patch.object(BatchBoltExecutor, "execute", watching):
        yield


def taken_apart(topology: Topology) -> Plan:
    """The wirings of chained tasks in a plan that runs each by itself: what is handed over travels in frames."""
    chained = plan(topology, is_chained=True)
    wirings = {task: replace(wiring, chained_targets=()) for task, wiring in chained.wirings.items()}
    return replace(plan(topology), wirings=wirings)


def topology_for(scenario: Scenario) -> Topology:
    return topology_of(scenario, LocalTally("chained"))


@pytest.mark.timeout(1800)
@drawn_at_length
@given(scenarios)
def test_a_chain_does_what_its_tasks_do_with_frames_between_them(scenario: Scenario):
    if plan(topology_for(scenario), is_chained=True).is_one_partition():
        scenario = replace(scenario, trips=())  # its waves may run twice, and a trip counts how often it is passed
    topology = topology_for(scenario)
    framed = play(scenario, taken_apart(topology), topology)
    topology = topology_for(scenario)
    chained = play(scenario, plan(topology, is_chained=True), topology)
    assert told_apart(chained.given, scenario) == told_apart(framed.given, scenario)
    assert chained.store.commits == framed.store.commits
    assert chained.store.calls == framed.store.calls
    assert chained.failed_attempts == framed.failed_attempts
    assert chained.metrics == framed.metrics


@pytest.mark.timeout(1800)
@drawn_at_length
@given(scenarios, st.integers(1, 3))
def test_what_runs_do_does_not_depend_on_slots(scenario: Scenario, slot_count: int):
    made = plan(topology_for(scenario), is_chained=True)
    if made.is_one_partition() or made.in_slots(slot_count).is_one_partition():
        scenario = replace(scenario, trips=())
    each = []
    for slots in (None, slot_count):
        topology = topology_for(scenario)
        each.append(play(scenario, plan(topology, is_chained=True).in_slots(slots), topology))
    apart, together = each
    assert told_apart(together.given, scenario) == told_apart(apart.given, scenario)
    assert together.store.commits == apart.store.commits
    assert together.store.calls == apart.store.calls
    assert together.failed_attempts == apart.failed_attempts
    assert together.metrics == apart.metrics


@pytest.mark.timeout(1800)
@drawn_at_length
@given(scenarios, st.integers(0, 3))
def test_what_is_committed_does_not_depend_on_chains(scenario: Scenario, fault_budget: int):
    states = fold(scenario).states[-1]
    for is_chained in (False, True):
        topology = topology_for(scenario)
        played = play(scenario, plan(topology, is_chained=is_chained), topology, fault_budget=fault_budget)
        store = played.store
        assert store.committed_txid == len(scenario.batches)
        assert {name: held for name, held in store.states.items() if name.startswith(("sums", "counts"))} == {
            name: held for name, held in states.items() if name.startswith(("sums", "counts")) and held
        }


@pytest.mark.timeout(1800)
@drawn_at_length
@given(scenarios, st.integers(0, 3))
def test_what_is_committed_does_not_depend_on_shares(scenario: Scenario, fault_budget: int):
    states = fold(scenario).states[-1]
    for least in (1, 1_000):  # each attempt may be a share, or none
        topology = topology_for(scenario)
        with mock.patch.object(shares, "LEAST_ATTEMPTS", least):
            store = play(scenario, plan(topology).in_slots(2), topology, fault_budget=fault_budget).store
        assert store.committed_txid == len(scenario.batches)
        assert {name: held for name, held in store.states.items() if name.startswith(("sums", "counts"))} == {
            name: held for name, held in states.items() if name.startswith(("sums", "counts")) and held
        }


def test_scenarios_have_chains_of_every_kind():
    """A generator without chains would show nothing."""
    plans = [plan(topology_for(chained_scenario(Random(seed))), is_chained=True) for seed in range(200)]
    chained = [made for made in plans if any(len(chain) > 1 for chain in made.chains)]
    assert len(chained) >= 60
    assert max(len(chain) for made in plans for chain in made.chains) >= 4
    widths = {len(w.tasks_of[w.component_id]) for made in chained for w in made.wirings.values() if w.chained_targets}
    assert widths == {1, 2, 3}
    handed = [Counter(target for w in made.wirings.values() for target in w.chained_targets) for made in chained]
    assert any(max(counts.values()) > 1 for counts in handed), "a task that is handed tuples by two others"
    assert any(made.chains[0][0] != chain[0] for made in chained for chain in made.chains if len(chain) > 1)
