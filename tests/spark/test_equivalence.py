"""One topology, two engines: what Spark commits once, the local cluster commits under every seed."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks import transfers
from benchmarks.task_counts import with_tasks
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.run import run
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from examples import global_count, ledger, top_k, word_count
from state.kinds.handles import DeclaredState, declared_states
from state.redis_admin.snapshots import snapshot
from tests.support.spark.bolts import Pass, Store, numbers_topology
from tests.support.spark.partitioned import Ranges, RangesEmitter
from tests.support.spark.shapes import (
    TRANSACTIONS,
    Double,
    First,
    Join,
    Last,
    SeenByAll,
    SeenByName,
    SeenByOne,
    SeenOnStreams,
    Sorting,
    Sparse,
    builder_of,
)
from tests.support.topologies.words import WORDS, counts_of_words, words_topology

pytestmark = [pytest.mark.spark, pytest.mark.redis]

SEEDS = range(4)


def wide(folder):
    return replace(numbers_topology(TRANSACTIONS, parallelism=3, ackers=4), topology_id="wide")


def groupings(folder):
    builder = builder_of("shapes")
    builder.set_bolt("sort", Sorting(), parallelism=2).none_grouping("numbers")
    # by shuffle no two attempts go to the same tasks, so what is kept of a task is left out here
    on_streams = builder.set_committer_bolt("on_streams", SeenOnStreams(), parallelism=2)
    on_streams.fields_grouping("sort", ["number"], "even")
    builder.set_committer_bolt("by_name", SeenByName(), parallelism=3).direct_grouping("sort", "named")
    builder.set_committer_bolt("by_all", SeenByAll(), parallelism=2).all_grouping("sort", "even")
    builder.set_committer_bolt("by_one", SeenByOne(), parallelism=2).global_grouping("sort", "odd")
    return builder.build()


def chain(folder):
    builder = builder_of("chain")
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("numbers")
    builder.set_committer_bolt("first", First()).global_grouping("work")
    builder.set_bolt("double", Double(), parallelism=2).shuffle_grouping("first")
    builder.set_committer_bolt("last", Last(), parallelism=2).fields_grouping("double", ["txid"])
    return builder.build()


def joined(folder):
    builder = builder_of("joined")
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("deep", Pass(), parallelism=2).shuffle_grouping("work")
    builder.set_committer_bolt("first", First()).global_grouping("work")
    builder.set_bolt("join", Join()).global_grouping("first").global_grouping("deep")
    builder.set_committer_bolt("last", Last()).global_grouping("join")
    return builder.build()


def sparse(folder):
    builder = builder_of("sparse", Sparse(TRANSACTIONS))
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("numbers")
    builder.set_committer_bolt("first", First()).global_grouping("work")
    builder.set_committer_bolt("last", Last(), parallelism=2).fields_grouping("first", ["txid"])
    return builder.build()


def without_committer(folder):
    builder = builder_of("uncommitted")
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("numbers")
    return builder.build()


def flat(folder):
    builder = builder_of("flat")
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("numbers", ["number"])
    return builder.build()


class FixedRanges(Ranges):
    """Cuts of a width that is drawn by partition and position, so that both engines cut the same."""

    def get_emitter(self, conf, context):
        return FixedRangesEmitter(self.path)


class FixedRangesEmitter(RangesEmitter):
    def emit_partition_batch_new(self, attempt, collector, partition, last):
        first = last[1] if last else partition * 100
        cut = [first, first + 1 + first % 7]
        self.emit("new", attempt, collector, partition, cut)
        return cut


def partitioned(folder):
    spout = FixedRanges(folder / "cuts")
    builder = TransactionalTopologyBuilder("partitioned", "ranges", spout, parallelism=2)
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("ranges")
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("work", ["number"])
    return builder.build()


def the_word_count(folder):
    for number in range(3):
        lines = [f"line {line} of {number}\tof all\n" for line in range(number * 5, number * 9 + 4)]
        (folder / f"{number}.txt").write_text("".join(lines), encoding="utf-8")
    return word_count.topology(f"{folder}/*.txt", lines_per_batch=3)


def the_ledger(folder):
    return transfers.topology(transfers=120, accounts=7, transfers_per_batch=20)


def the_global_count(folder):
    return global_count.topology()


def the_words_of_storm(folder):
    return words_topology()


TOPOLOGIES = [
    wide,
    groupings,
    chain,
    joined,
    sparse,
    without_committer,
    flat,
    partitioned,
    the_word_count,
    the_ledger,
    the_global_count,
    the_words_of_storm,
]


def handles(topology: Topology) -> list[DeclaredState]:
    specs: list[type[Any]] = [type(component.spec) for component in topology.components]
    return [handle for spec in specs if issubclass(spec, BaseBatchBolt) for handle in declared_states(spec).values()]


@pytest.mark.nightly  # random topologies are compared, too
@pytest.mark.parametrize("made", TOPOLOGIES, ids=lambda made: made.__name__)
def test_both_engines_commit_the_same_state(cluster, made):
    topology = made(cluster.notes)
    statistics = cluster.run(topology)
    on_spark = snapshot(cluster.client, topology.topology_id, handles(topology))
    assert on_spark.txid == statistics.committed > 0
    for seed in SEEDS:
        options = RunOptions(max_spout_pending=1 + 3 * seed, commit_group_max=1 + seed)
        with LocalCluster(seed=seed, receive_capacity=2 + seed) as local:
            run = local.submit(topology, options=options)
            committed = run.run_until_idle()
            assert run.snapshot() == on_spark
        counted = (committed.committed, committed.tuples, committed.counters)
        assert counted == (statistics.committed, statistics.tuples, statistics.counters)


def examples_over(folder):
    """Counts, balances that are read before they are written, and sorted sets."""
    draw = Random(7)
    pairs = [(draw.randrange(5), draw.randrange(5)) for _ in range(200)]
    bank = [{"number": n, "source": "bank", "target": f"a{n}", "cents": 500} for n in range(5)]
    moved = [
        {"number": n, "source": f"a{a}", "target": f"a{b}", "cents": n % 300 - 5} for n, (a, b) in enumerate(pairs, 5)
    ]
    (folder / "words.txt").write_text("".join(f"word{a} of {b}\n" for a, b in pairs), encoding="utf-8")
    (folder / "t.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in [*bank, *moved]), encoding="utf-8")
    orders = "".join(f"o{n},p{a},{b},{draw.randrange(9999)}\n" for n, (a, b) in enumerate(pairs))
    (folder / "orders.csv").write_text(f"order,product,units,cents\n{orders}", encoding="utf-8")
    yield word_count.topology(f"{folder}/words.txt", lines_per_batch=9)
    yield ledger.topology(f"{folder}/t.jsonl", lines_per_batch=9)
    yield top_k.topology(f"{folder}/orders.csv", rows_per_batch=9)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_the_local_engine_commits_what_spark_commits(cluster, tasks):
    for topology in (with_tasks(example, tasks) for example in examples_over(cluster.notes)):
        statistics = cluster.run(topology)
        on_spark = snapshot(cluster.client, topology.topology_id, handles(topology))
        cluster.client.flushall()
        locally = run(topology, redis_url=cluster.redis_url, engine="local")
        assert snapshot(cluster.client, topology.topology_id, handles(topology)) == on_spark
        assert on_spark.txid == statistics.committed > 20
        assert (locally.committed, locally.tuples, locally.dead_letters) == (
            statistics.committed,
            statistics.tuples,
            statistics.dead_letters,
        )


def test_the_words_of_storm_are_counted_as_they_should_be(cluster):
    cluster.run(words_topology())
    assert cluster.hash("{words}:counts") == counts_of_words(WORDS)
