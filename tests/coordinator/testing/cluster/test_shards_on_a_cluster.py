"""A topology over shards on several servers: run in one process, and read by a client whose map of slots is old."""

from __future__ import annotations

from contextlib import closing

import pytest
from redis.cluster import RedisCluster

from coordinator.testing.cluster.cluster import LocalCluster
from state import snapshot
from state.redis_server.program import find_server_program
from tests.support.stores.moving_servers import ClusteredServers
from tests.support.topologies.sharded_topology import over
from tests.support.topologies.typed_states import WORDS, typed_topology

pytestmark = pytest.mark.redis


def test_a_cluster_is_run_on_and_read_wherever_its_slots_are():
    topology = typed_topology((*WORDS, ""))
    with LocalCluster(seed=1) as alone:
        expected = alone.submit(topology)
        expected.run_until_idle()
        states = expected.snapshot().states
    with (
        ClusteredServers(find_server_program()) as servers,
        closing(RedisCluster(host="127.0.0.1", port=servers.primaries()[0].port)) as client,
    ):
        for shard_count, moved in ((1, "{typed}:"), (6, "{typed.3}:")):
            with LocalCluster(seed=1, redis_url=servers.url) as cluster:
                run = cluster.submit(over(topology, shard_count))
                run.run_until_idle()
                assert run.snapshot().states == states
                assert snapshot(client, "typed", topology.states).states == states
                servers.move_slot(moved)
                assert snapshot(client, "typed", topology.states).states == states
                assert run.snapshot().states == states
            for node in servers.primaries():
                node.ask("FLUSHALL")
