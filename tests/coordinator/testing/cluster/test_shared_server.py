"""Local clusters that share one server: each run is an owner of its own, whatever the seeds."""

from __future__ import annotations

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from state.errors import FencedError
from state.redis_owner.store import RedisStore
from tests.support.stores.admin import admin_of, overview_of
from tests.support.topologies.components import Count, Lines, build

SEED = 7


def topology():
    return build(("count", Count(), ["lines"]), spout=Lines(3))


def test_of_two_clusters_with_equal_seeds_the_newer_fences_the_older(redis_backend):
    with (
        LocalCluster(seed=SEED, redis_url=redis_backend.url) as one,
        LocalCluster(seed=SEED, redis_url=redis_backend.url) as other,
    ):
        older, newer = one.submit(topology()), other.submit(topology())
        with pytest.raises(FencedError):
            older.run_until_idle()
        assert newer.run_until_idle().committed == 3
        assert newer.state("counts") == {f"lines of {txid}": 4 for txid in (1, 2, 3)}


def test_a_run_that_has_ended_counts_as_running_no_longer(redis_backend):
    with LocalCluster(seed=SEED, redis_url=redis_backend.url) as cluster:
        run = cluster.submit(topology())
        store = RedisStore(redis_backend.url, "test", client=redis_backend.client())
        assert admin_of(store).connected_runs() == 1
        run.run_until_idle()
        assert admin_of(store).connected_runs() == 0


def test_a_topology_that_is_dropped_and_started_with_an_equal_seed_is_another_one(redis_backend):
    generations = []
    for _ in range(2):
        with LocalCluster(seed=SEED, redis_url=redis_backend.url) as cluster:
            cluster.submit(topology()).run_until_idle()
            store = RedisStore(redis_backend.url, "test", client=cluster.client)
            status = overview_of(store)
            assert status is not None
            generations.append((status.generation, status.fence))
            admin_of(store).drop()
    assert len({generation for generation, _ in generations}) == 2
    assert len({fence for _, fence in generations}) == 2
