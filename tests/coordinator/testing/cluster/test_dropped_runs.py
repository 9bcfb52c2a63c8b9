"""A topology that is dropped while it runs: the run ends and says so, whatever it was doing."""

from __future__ import annotations

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import FixedBatchesSpout, LocalCluster, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from state import FencedError, HashState, StateRefusedError
from state.keys import Keys
from state.redis_owner.store import RedisStore
from tests.support.stores.admin import admin_of
from tests.support.topologies.components import Count, build

ROWS = [["a", n] for n in range(8)]
FIELDS = ["line", "number"]
SPOUTS = {
    "fixed": FixedBatchesSpout([[row] for row in ROWS], FIELDS),
    "partitioned": MemoryTransactionalSpout([ROWS], FIELDS, take=1),
    "opaque": OpaqueMemoryTransactionalSpout([ROWS], FIELDS, take=1),
}
DROPPED = r"topology 'test' was dropped during this run"


class Reading(BaseBatchBolt, ICommitter):
    """Reads before it writes, so that a commit phase learns of a drop before anything is published."""

    seen = HashState("seen", value=int)

    def execute(self, tup):
        """Ignores it."""

    def finish_batch(self):
        self.seen.put("last", (self.seen.get("last") or 0) + 1)


BOLTS = {"writes only": Count(), "reads": Reading()}


def store_of(cluster) -> RedisStore:
    return RedisStore("in memory", "test", client=cluster.client)


@pytest.mark.parametrize("spout", SPOUTS)
@pytest.mark.parametrize("bolt", BOLTS)
@pytest.mark.parametrize("ticks", range(1, 60, 7))
def test_a_run_under_which_its_topology_is_dropped_says_so_and_leaves_nothing(spout, bolt, ticks):
    with LocalCluster(seed=ticks) as cluster:
        topology = build(("commit", BOLTS[bolt], ["lines"]), spout=SPOUTS[spout])
        run = cluster.submit(topology)
        for _ in range(ticks):
            run.tick()
        assert admin_of(store_of(cluster)).drop().deleted
        with pytest.raises(FencedError, match=DROPPED):
            run.run_until_idle()
        assert not list(cluster.client.scan_iter("*"))


def under_way(cluster, bolt="writes only"):
    """A run after twenty ticks, and its topology."""
    topology = build(("commit", BOLTS[bolt], ["lines"]), spout=SPOUTS["fixed"])
    run = cluster.submit(topology)
    for _ in range(20):
        run.tick()
    return run, topology


@pytest.mark.parametrize("bolt", BOLTS)
def test_a_run_whose_topology_is_dropped_and_started_again_says_that_it_was_dropped(cluster, bolt):
    older, topology = under_way(cluster, bolt)
    admin_of(store_of(cluster)).drop()
    newer = cluster.submit(topology)
    newer.tick()
    with pytest.raises(FencedError, match=DROPPED):
        older.run_until_idle()
    assert newer.run_until_idle().committed == 8


@pytest.mark.parametrize("bolt", BOLTS)
def test_a_run_that_is_overtaken_still_says_that_a_newer_one_runs(cluster, bolt):
    older, topology = under_way(cluster, bolt)
    cluster.submit(topology)
    with pytest.raises(FencedError, match="was taken over by a newer coordinator"):
        older.run_until_idle()


@pytest.mark.parametrize("bolt", BOLTS)
def test_a_server_that_lost_everything_is_not_taken_for_a_drop(cluster, bolt):
    run, _ = under_way(cluster, bolt)
    cluster.client.flushall()
    with pytest.raises(StateRefusedError, match=r"is gone"):
        run.run_until_idle()


def test_a_drop_that_has_only_begun_stops_the_run_too(cluster):
    run, _ = under_way(cluster)
    cluster.client.hset(Keys("test").control, "dropping", "1")
    with pytest.raises(FencedError, match=DROPPED):
        run.run_until_idle()
