"""A topology over sixteen slots of a real cluster: drivers killed at every point, slots that move, nodes that fail."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from redis.cluster import RedisCluster

from coordinator import run
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state import fault_points, snapshot
from state.errors import StateRefusedError, TransactionError
from state.redis_admin.topology import RedisTopology
from state.redis_client.connection import pairs_of, text_of
from state.redis_server.program import find_server_program
from state.values.state_kind import StateKind
from tests.support.stores.moving_servers import ClusteredServers, await_
from tests.support.topologies.kept_states import kept_topology
from tests.support.topologies.typed_states import WORDS, typed_topology

pytestmark = [pytest.mark.nightly, pytest.mark.redis, pytest.mark.chaos]
SHARDS = 16
TIMES = int(os.environ.get("TXBATCH_SHARD_TIMES", "2"))
"""How often a driver is killed at each point, and about how often slots change hands; 20 take some minutes."""
POINTS = (
    *("shards.taken", "metadata.sending", "metadata.answered", "shards.staging", "shards.staged", "commit.sending"),
    *("commit.answered", "shards.applying", "shards.applied", "confirm.sending", "confirm.answered"),
)
LINES = tuple(f"word{number % 53}" for number in range(600))
EXPECTED = Counter(LINES)
SMALL = RunOptions(max_spout_pending=4, commit_group_max=2)
"""Fifteen groups, so that there is much to be in the middle of."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusteredServers]:
    with ClusteredServers(find_server_program(), node_timeout_ms=1000) as servers:
        yield servers


@pytest.fixture(scope="module")
def durable_cluster() -> Iterator[ClusteredServers]:
    with ClusteredServers(find_server_program(), node_timeout_ms=15_000, fsync=True) as servers:
        yield servers


def topology_of(topology_id: str) -> Topology:
    return replace(kept_topology(LINES, lines_per_batch=20, topology_id=topology_id), shard_count=SHARDS)


def run_until(topology_id: str, url: str, point: str, visit: int) -> None:
    """A process that runs the topology and is killed at a visit of a point."""
    visits = count(1)

    def visited(name: str) -> None:
        if name == point and next(visits) == visit:
            os.kill(os.getpid(), signal.SIGKILL)

    with fault_points.installed(visited):
        run(topology_of(topology_id), redis_url=url, engine="local", options=SMALL)


def counts_on(url: str, topology_id: str) -> dict[str, int]:
    """The word counts of all shards, each once."""
    with closing(RedisTopology(url, topology_id)) as topology:
        pieces = topology.records().entries("counts", StateKind.HASH)
        return {text_of(word): int(counted) for piece in pieces for word, counted in piece}


def sums_of_sets(url: str, topology_id: str) -> dict[str, float]:
    with closing(RedisTopology(url, topology_id)) as topology:
        records = topology.records()
        found = [
            entry
            for shard in records.shards
            for entry in pairs_of(shard._connection.call("ZRANGE", shard.keys.state("ranks"), "0", "-1", "WITHSCORES"))
        ]
        return {text_of(word): float(score) for word, score in found}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_that_is_killed_anywhere_is_continued_exactly(cluster: ClusteredServers, point: str) -> None:
    context = multiprocessing.get_context("spawn")
    for number in range(TIMES):
        topology_id = f"{point}-{number}"
        visit = 1 if point in {"shards.taken", "confirm.sending", "confirm.answered"} else 1 + 2 * number % 15
        process = context.Process(target=run_until, args=(topology_id, cluster.url, point, visit))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        run(topology_of(topology_id), redis_url=cluster.url, engine="local", options=SMALL)
        assert counts_on(cluster.url, topology_id) == EXPECTED
        assert sums_of_sets(cluster.url, topology_id) == EXPECTED


@pytest.mark.parametrize("decodes", [False, True])
@pytest.mark.parametrize("shard_count", [1, SHARDS])
def test_a_client_of_the_cluster_reads_all_states(cluster: ClusteredServers, shard_count: int, decodes: bool) -> None:
    topology = replace(typed_topology(WORDS), topology_id=f"typed-{shard_count}-{decodes}", shard_count=shard_count)
    run(topology, redis_url=cluster.url, engine="local", options=SMALL)
    first = cluster.primaries()[0]
    with closing(RedisCluster(host="127.0.0.1", port=first.port, decode_responses=decodes)) as client:
        states = snapshot(client, topology.topology_id, topology.states).states
    with LocalCluster(seed=1) as alone:
        expected = alone.submit(typed_topology(WORDS))
        expected.run_until_idle()
        assert states == expected.snapshot().states


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(max(1, TIMES // 5)))
@pytest.mark.parametrize(
    ("kind", "durability"),
    [
        ("moves", "memory"),
        ("is handed over", "memory"),
        ("is lost", "memory"),
        ("is lost", "replica"),
        ("is restarted", "fsync"),
    ],
)
def test_slots_that_change_hands_under_a_run_lose_nothing(
    request: pytest.FixtureRequest, kind: str, durability: str, number: int
) -> None:
    """Where a primary is lost, its replica may lack the last writes: then the run may be stopped, and be continued.

    Not if a replica had to have all that was decided.
    """
    cluster = request.getfixturevalue("durable_cluster" if durability == "fsync" else "cluster")
    may_stop = kind == "is lost" and durability == "memory"
    random, topology_id = Random(f"{kind} {number}"), f"hands-{kind.replace(' ', '-')}-{durability}-{number}"
    visits, strikes = count(1), 0

    def visited(name: str) -> None:
        nonlocal strikes
        if name in {"shards.staging", "commit.sending", "shards.applying"} and next(visits) % 9 == 0:
            strikes += 1
            number = random.randrange(SHARDS + 1)
            key = f"{{{topology_id}}}:" if number == SHARDS else f"{{{topology_id}.{number}}}:"
            if kind == "moves":
                cluster.move_slot(key)
            elif kind == "is restarted":
                cluster.restart(key)
            else:
                cluster.fail_over(key, by_kill=kind == "is lost")
                cluster.restart_dead()
                if durability == "replica":
                    await_("each primary has a replica again", cluster.is_settled)

    await_("each primary has its replica", cluster.is_settled)
    options = replace(SMALL, durability=durability)
    with fault_points.installed(visited):
        try:
            run(topology_of(topology_id), redis_url=cluster.url, engine="local", options=options)
        except TransactionError:
            if not may_stop:
                raise
    assert strikes
    try:
        run(topology_of(topology_id), redis_url=cluster.url, engine="local", options=SMALL)
    except StateRefusedError:  # two servers have lost what they kept for each other
        if not may_stop:
            raise
    else:
        assert counts_on(cluster.url, topology_id) == EXPECTED
