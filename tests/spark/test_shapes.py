"""Graphs of every shape give the right result: streams, groupings, chained committers, several ackers."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator.engines.spark.shipping import pickle_spec
from coordinator.topology.planning.plan import make_plan
from tests.support.spark.bolts import Pass, exact_counts, exact_sums, numbers_topology
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.spark.shapes import (
    NUMBERS,
    SIZE,
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
    builder_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.redis, EITHER_ENGINE]


@pytest.mark.parametrize(("parallelism", "ackers"), [(1, 1), (3, 1), (3, 4)])
def test_parallelism_and_the_number_of_ackers_do_not_change_the_result(cluster, parallelism, ackers):
    cluster.run(numbers_topology(TRANSACTIONS, parallelism=parallelism, ackers=ackers))

    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)
    assert cluster.hash("{numbers}:sums") == exact_sums(TRANSACTIONS)


def test_named_streams_and_every_grouping_bring_each_tuple_where_it_belongs(cluster):
    builder = builder_of("shapes")
    builder.set_bolt("sort", Sorting(), parallelism=2).none_grouping("numbers")
    on_streams = builder.set_committer_bolt("on_streams", SeenOnStreams(), parallelism=2)
    on_streams.fields_grouping("sort", ["number"], "even").shuffle_grouping("sort", "odd")
    builder.set_committer_bolt("by_name", SeenByName(), parallelism=3).direct_grouping("sort", "named")
    builder.set_committer_bolt("by_all", SeenByAll(), parallelism=2).all_grouping("sort", "even")
    builder.set_committer_bolt("by_one", SeenByOne(), parallelism=2).global_grouping("sort", "odd")
    cluster.run(builder.build())

    streams = Counter(what.rpartition(" ")[0] for what in cluster.hash("{shapes}:on_streams"))
    assert streams == {f"{'odd' if number % 2 else 'even'} {number}": 1 for number in NUMBERS}
    assert cluster.hash("{shapes}:by_name") == {f"named {number} {number % 3}": 1 for number in NUMBERS}
    evens = [number for number in NUMBERS if number % 2 == 0]
    assert cluster.hash("{shapes}:by_all") == {f"even {number} {task}": 1 for number in evens for task in range(2)}
    assert cluster.hash("{shapes}:by_one") == {f"odd {number} 0": 1 for number in NUMBERS if number % 2}


@pytest.mark.parametrize("commit_group_max", [1, 64])
def test_chained_committers_with_a_bolt_between_them_run_in_the_commit_phase_in_order(
    cluster, contexts, commit_group_max
):
    builder = builder_of("chain")
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("numbers")
    builder.set_committer_bolt("first", First()).global_grouping("work")
    builder.set_bolt("double", Double(), parallelism=2).shuffle_grouping("first")
    builder.set_committer_bolt("last", Last(), parallelism=2).fields_grouping("double", ["txid"])
    topology = builder.build()
    assert len(make_plan(topology, pickle_spec).stages) == 4  # three of them in the commit phase
    before = contexts.shuffle_files()  # Spark SQL leaves its own to the garbage collector
    cluster.run(topology, commit_group_max=commit_group_max)

    totals = {str(txid): 2 * sum(range(txid * SIZE)) for txid in range(1, TRANSACTIONS + 1)}
    assert cluster.hash("{chain}:doubled") == totals
    assert cluster.client.lrange("{chain}:order", 0, -1) == [b"%d" % txid for txid in range(1, TRANSACTIONS + 1)]
    assert cluster.hash("{chain}:counts") == exact_counts(TRANSACTIONS)
    assert set(contexts.shuffle_files()) <= set(before)  # of none of the commit phases a wave has had


@pytest.mark.case(id="P-04")
def test_a_bolt_fed_by_a_committer_and_by_a_bolt_gets_both(cluster):
    """The shape that livelocks in Storm."""
    builder = builder_of("joined")
    builder.set_bolt("work", Pass(), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("deep", Pass(), parallelism=2).shuffle_grouping("work")
    builder.set_committer_bolt("first", First()).global_grouping("work")
    builder.set_bolt("join", Join()).global_grouping("first").global_grouping("deep")
    builder.set_committer_bolt("last", Last()).global_grouping("join")
    cluster.run(builder.build())

    expected = {
        str(txid): sum(range(txid * SIZE)) * 1_000_000 + sum(range((txid - 1) * SIZE, txid * SIZE))
        for txid in range(1, TRANSACTIONS + 1)
    }
    assert cluster.hash("{joined}:doubled") == expected
