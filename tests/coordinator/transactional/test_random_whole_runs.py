"""The random topologies on the stages Spark runs, without Spark: in one job and in two, frames disturbed.

What the local cluster cannot show is here: shuffled frames of many tuples, commit phases that are run early,
stages in a row. The fold is the same, and so is the demand that every commit leaves its state.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.runs.whole_runs import SLOTS, RandomFaults, run
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario, random_scenario
from tests.support.scenarios.reference_fold import fold
from tests.support.stores.checked_store import CheckedStore
from tests.support.topologies.components import plan

EXAMPLES = int(os.environ.get("TXBATCH_RANDOM_EXAMPLES", "150"))

scenarios = st.randoms(use_true_random=False).map(random_scenario)


def play_stages(scenario: Scenario, *, early_commit: bool, is_chained: bool) -> None:
    store = CheckedStore(fold(scenario).states)
    topology = topology_of(scenario, LocalTally("stages"))
    bounds = {"max_spout_pending": scenario.window, "commit_group_max": scenario.group}
    run(
        topology,
        store,
        seed=scenario.seed,
        fault=RandomFaults(Random(scenario.seed), scenario.fault_budget),
        made=plan(topology, is_chained=is_chained).in_slots(SLOTS[scenario.seed % len(SLOTS)]),
        commit_operations_max=scenario.operations_max,
        early_commit=early_commit,
        **bounds,
    )
    store.check()
    assert store.committed_txid == len(scenario.batches)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("is_chained", [False, True], ids=["unchained", "chained"])
@pytest.mark.parametrize("early_commit", [False, True], ids=["two jobs", "one job"])
def test_every_commit_of_a_random_topology_leaves_the_state_of_the_fold(early_commit, is_chained):
    @settings(
        deadline=None,
        max_examples=EXAMPLES,
        derandomize=EXAMPLES == 150,
        database=None,
    )
    @given(scenarios)
    def holds(scenario: Scenario) -> None:
        play_stages(scenario, early_commit=early_commit, is_chained=is_chained)

    holds()
