"""The random topologies on the stages Spark runs, without Spark: in one job and in two, frames disturbed.

What the local cluster cannot show is here: shuffled frames of many tuples, commit phases that are run early,
stages in a row. The fold is the same, and so is the demand that every commit leaves its state.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.runs.scenario_runs import drawn_at_length, run_scenario
from tests.support.runs.whole_runs import SLOTS, in_both_modes
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import Scenario, random_scenario
from tests.support.scenarios.reference_fold import fold
from tests.support.stores.checked_store import CheckedStore
from tests.support.topologies.components import plan

scenarios = st.randoms(use_true_random=False).map(random_scenario)


@pytest.mark.often("two jobs-chained")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("is_chained", [False, True], ids=["unchained", "chained"])
@in_both_modes
def test_every_commit_of_a_random_topology_leaves_the_state_of_the_fold(early_commit, is_chained):
    @drawn_at_length(150)
    @given(scenarios)
    def holds(scenario: Scenario) -> None:
        store = CheckedStore(fold(scenario).states)
        topology = topology_of(scenario, LocalTally("stages"))
        made = plan(topology, is_chained=is_chained).in_slots(SLOTS[scenario.seed % len(SLOTS)])
        budget = scenario.fault_budget
        run_scenario(scenario, topology, store, made, fault_budget=budget, early_commit=early_commit)
        store.check()
        assert store.committed_txid == len(scenario.batches)

    holds()
