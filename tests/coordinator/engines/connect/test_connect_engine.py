"""Waves as queries of two columns, without a server: however Spark places partitions, the fold's state is left.

TXBATCH_CONNECT_SCENARIOS sets how many random topologies are tried.
"""

from __future__ import annotations

import logging
import os
from random import Random

import pytest

from coordinator.engines.connect.arrow_stages import ArrowStage
from coordinator.engines.connect.connect_engine import ConnectEngine
from state.errors import EngineError
from tests.support.runs.fake_connect import FakeSession, by_hash, by_id, split
from tests.support.runs.whole_runs import SLOTS, run
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.scenarios.random_topologies import random_scenario
from tests.support.scenarios.reference_fold import fold
from tests.support.spark.bolts import numbers_topology
from tests.support.stores.checked_store import CheckedStore
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import plan

SCENARIOS = int(os.environ.get("TXBATCH_CONNECT_SCENARIOS", "12"))


def play(seed, placement, *, has_ids=True, **options):
    """Runs a random topology on a session that places partitions like this; its engine, store and scenario."""
    scenario = random_scenario(Random(seed), with_faults=False)
    store = CheckedStore(fold(scenario).states)
    topology = topology_of(scenario, LocalTally("stages"))
    made = plan(topology).in_slots(SLOTS[seed % len(SLOTS)])
    session = FakeSession(placement, has_ids=has_ids)
    engine = ConnectEngine(session, made, "redis://nowhere", "nonce")
    run(
        topology,
        store,
        made=made,
        engine=engine,
        max_spout_pending=scenario.window,
        commit_group_max=scenario.group,
        commit_operations_max=scenario.operations_max,
        **options,
    )
    store.check()
    assert store.committed_txid == len(scenario.batches)
    assert session.tags == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("early_commit", [False, True], ids=["two queries", "one query"])
@pytest.mark.parametrize("has_ids", [False, True], ids=["by hash", "by id"])
@pytest.mark.often("by id-two queries")
def test_every_commit_of_a_random_topology_leaves_the_state_of_the_fold(has_ids, early_commit):
    for seed in range(SCENARIOS):
        play(seed, by_id if has_ids else by_hash, has_ids=has_ids, early_commit=early_commit)


@pytest.mark.timeout(600)
def test_a_partition_that_spark_splits_commits_nothing_and_is_tried_again():
    splits = 0

    def sometimes_split(above, count):
        nonlocal splits
        is_split = random.random() < 0.3
        splits += is_split
        return split(above, count) if is_split else by_id(above, count)

    for seed in range(SCENARIOS):
        random = Random(seed)
        play(seed, sometimes_split)
    assert splits > SCENARIOS


class GoneSession(FakeSession):
    """A server that answers no query, and no question after it."""

    def range(self, *arguments):
        del self.conf
        raise ConnectionError("no route to it")


def test_a_server_that_does_not_answer_any_more_ends_the_run():
    topology = numbers_topology(2)
    made = plan(topology)
    engine = ConnectEngine(GoneSession(by_id), made, "redis://nowhere", "nonce")
    with pytest.raises(EngineError, match=r"^the Spark Connect server has not done what a run needs"):
        run(topology, MemoryStore(), made=made, engine=engine)
    engine.close()


class FailingSession(FakeSession):
    """Fails its first query, as Spark does when a worker dies."""

    failed = False

    def range(self, *arguments):
        if not self.failed:
            self.failed = True
            raise RuntimeError("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
        return super().range(*arguments)


def test_a_query_that_fails_on_a_server_that_answers_is_tried_again(caplog):
    topology = numbers_topology(2)
    made = plan(topology)
    store = MemoryStore()
    with caplog.at_level(logging.INFO, logger="txbatch"):
        run(topology, store, made=made, engine=ConnectEngine(FailingSession(by_id), made, "redis://nowhere", "nonce"))

    assert store.committed_txid == 2
    assert "a worker ended without a word" in caplog.text


def echo(partition, records):
    return [(0, f"{partition}: {len(list(records))}".encode())]


def test_partitions_without_frames_run_and_summon_those_below():
    stage = ArrowStage(echo, partitions=[0, 2], partition_count=3, next_count=5)
    summoned = FakeSession(by_id).range(0, 3, 1, 3)
    run_on = [stage([batch]) for batch in summoned.toArrow().to_batches()]

    rows = [tuple(row.values()) for batches in run_on for batch in batches for row in batch.to_pylist()]
    assert [row for row in rows if row[1]] == [(0, b"0: 0"), (0, b"2: 0")]
    assert sorted(number for number, frame in rows if frame is None) == [0, 1, 2, 3, 4]
