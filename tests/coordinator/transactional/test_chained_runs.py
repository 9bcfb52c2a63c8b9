"""Chains change where tasks run, and nothing they do: random topologies, chained and not.

Two comparisons. Against the same wirings run task by task, with frames between all of them, everything is equal:
what each task is given and in which order, what is committed, by which attempts and in which groups, what failed, and
the metrics. Against the topology without chains, what is committed is equal; which task is given a tuple may differ
where the grouping leaves that open.

The same comparison shows that slots change nothing: whether tasks share a partition is not seen by any of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinator.engines.waves import shares
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import Plan
from state.attempt import TransactionAttempt
from tests.support.runs.scenario_runs import WritingStore, counts_of, drawn_at_length, run_scenario
from tests.support.scenarios.chained_topologies import chained_scenario
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario
from tests.support.scenarios.reference_fold import fold
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import plan

scenarios = st.randoms(use_true_random=False).map(chained_scenario)

Executed = list[tuple[str, int, str, list[Any]]]
"""What one bolt was given, in order: source, task of the source, stream, values."""
Given = dict[tuple[str, int, TransactionAttempt], dict[BatchBoltExecutor, Executed]]
"""(component, task index, attempt) -> what each execution of the task gave the attempt's bolt."""


def play(scenario: Scenario, made: Plan, topology: Topology) -> dict[str, Any]:
    """What a run has left."""
    store = WritingStore()
    given: Given = defaultdict(lambda: defaultdict(list))
    with watched(given):
        coordinator = run_scenario(scenario, topology, store, made)
    left = {"given": told_apart(given, scenario), "commits": store.commits, "calls": store.calls}
    return {**left, "failed": coordinator.statistics.failed_attempts, "metrics": counts_of(coordinator)}


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
@drawn_at_length(150)
@given(scenarios)
def test_a_chain_does_what_its_tasks_do_with_frames_between_them(scenario: Scenario):
    if plan(topology_for(scenario), is_chained=True).is_one_partition():
        scenario = replace(scenario, trips=())  # its waves may run twice, and a trip counts how often it is passed
    topology = topology_for(scenario)
    framed = play(scenario, taken_apart(topology), topology)
    topology = topology_for(scenario)
    assert play(scenario, plan(topology, is_chained=True), topology) == framed


@pytest.mark.timeout(1800)
@drawn_at_length(150)
@given(scenarios, st.integers(1, 3))
@pytest.mark.nightly
def test_what_runs_do_does_not_depend_on_slots(scenario: Scenario, slot_count: int):
    made = plan(topology_for(scenario), is_chained=True)
    if made.is_one_partition() or made.in_slots(slot_count).is_one_partition():
        scenario = replace(scenario, trips=())
    left = []
    for slots in (None, slot_count):
        topology = topology_for(scenario)
        left.append(play(scenario, plan(topology, is_chained=True).in_slots(slots), topology))
    apart, together = left
    assert together == apart


def assert_commits_the_fold(scenario: Scenario, topology: Topology, made: Plan, fault_budget: int) -> None:
    store = MemoryStore()
    run_scenario(scenario, topology, store, made, fault_budget=fault_budget)
    assert store.committed_txid == len(scenario.batches)
    expected, found = (
        {name: held for name, held in states.items() if name.startswith(("sums", "counts"))}
        for states in (fold(scenario).states[-1], store.states)
    )
    assert found == {name: held for name, held in expected.items() if held}


@pytest.mark.timeout(1800)
@drawn_at_length(150)
@given(scenarios, st.integers(0, 3))
def test_what_is_committed_does_not_depend_on_chains(scenario: Scenario, fault_budget: int):
    for is_chained in (False, True):
        topology = topology_for(scenario)
        assert_commits_the_fold(scenario, topology, plan(topology, is_chained=is_chained), fault_budget)


@pytest.mark.timeout(1800)
@drawn_at_length(150)
@given(scenarios, st.integers(0, 3))
@pytest.mark.nightly
def test_what_is_committed_does_not_depend_on_shares(scenario: Scenario, fault_budget: int):
    for least in (1, 1_000):  # each attempt may be a share, or none
        topology = topology_for(scenario)
        with mock.patch.object(shares, "LEAST_ATTEMPTS", least):
            assert_commits_the_fold(scenario, topology, plan(topology).in_slots(2), fault_budget)


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
