"""The first random topologies on Spark: the same state as the fold says, and so as the local cluster's.

What only the local cluster can do, frames that are disturbed one by one and runs given up at a tick, is left
out; bolts still fail by `FailedException`. The stages themselves run many more of them without Spark.

TXBATCH_SPARK_SCENARIOS sets how many there are.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest

from state.kinds.handles import declared_states
from state.redis_admin.snapshots import snapshot
from tests.support.scenarios.random_bolts import KEEPING, FileTally, topology_of
from tests.support.scenarios.random_topologies import random_scenario
from tests.support.scenarios.reference_fold import fold

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

SCENARIOS, CHUNK = int(os.environ.get("TXBATCH_SPARK_SCENARIOS", "25")), 5


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.nightly) for first in range(CHUNK, SCENARIOS, CHUNK))]
)
def test_random_topologies_leave_the_state_of_the_fold(cluster, first):
    for seed in range(first, first + CHUNK):
        scenario = random_scenario(Random(seed), with_faults=False)
        # few waves and groups: a job costs more here than all that a scenario computes
        scenario = replace(scenario, trips=scenario.trips[:1])
        folder = cluster.notes / str(seed)
        folder.mkdir()
        topology_id = f"random{seed}"
        statistics = cluster.run(
            topology_of(scenario, FileTally(folder), topology_id),
            max_spout_pending=12,
            commit_group_max=12,
            max_attempts=40,
        )
        committers = [KEEPING[part.committer or 0] for part in scenario.committers()]
        handles = [handle for committer in committers for handle in declared_states(committer).values()]
        found = snapshot(cluster.client, topology_id, handles)

        assert statistics.last_txid == found.txid == len(scenario.batches)
        assert found.states == fold(scenario).states[-1], f"seed {seed}"
