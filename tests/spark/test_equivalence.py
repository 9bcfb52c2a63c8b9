"""One topology, two engines: both commit the same, and what a plain loop says."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from benchmarks import transfers
from benchmarks.task_counts import with_tasks
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import FixedBatchesSpout, stream
from coordinator.run import run
from coordinator.topology.building.topology import Topology
from examples import ledger, top_k, word_count
from state import HashState, SetState
from state.errors import TopologyError
from state.kinds.handles import DeclaredState, declared_states
from state.redis_admin.snapshots import snapshot
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.topologies.ledger_balances import balances_of_a_plain_loop

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def handles(topology: Topology) -> list[DeclaredState]:
    specs: list[type[Any]] = [type(component.spec) for component in topology.components]
    return [handle for spec in specs if issubclass(spec, BaseBatchBolt) for handle in declared_states(spec).values()]


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


@pytest.mark.often("2")
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


TRANSFERS, ACCOUNTS, SEED = 900, 12, 3


@EITHER_ENGINE
@pytest.mark.parametrize(
    ("parallelism", "commit_group_max"),
    [
        pytest.param(1, 64, marks=pytest.mark.nightly),
        (3, 64),
        pytest.param(2, 7, marks=pytest.mark.every_spark),
        (2, 1),
    ],
)
def test_the_ledger_equals_a_plain_loop_over_its_transfers(cluster, parallelism, commit_group_max):
    topology = transfers.topology(
        transfers=TRANSFERS, accounts=ACCOUNTS, transfers_per_batch=40, seed=SEED, parallelism=parallelism
    )
    statistics = cluster.run(topology, commit_group_max=commit_group_max)

    balances, refused = balances_of_a_plain_loop(TRANSFERS, ACCOUNTS, SEED)
    assert cluster.hash("{ledger}:balances") == balances
    assert statistics.counters == {"refused": refused}
    assert (statistics.committed, statistics.tuples) == (-(-TRANSFERS // 40), TRANSFERS)
    assert refused > 0
    assert sum(balances.values()) == ACCOUNTS * transfers.OPENING_BALANCE


def test_a_ledger_of_one_account_is_refused():
    with pytest.raises(TopologyError, match="ledger needs at least 2 accounts, got 1"):
        transfers.topology(accounts=1)


LINES = [[[f"to be or not {number % 5}"] for number in range(start, start + 9)] for start in range(0, 90, 9)]


def is_word(word):
    return not word.isdigit()


@pytest.mark.often("1-*", "2-local")
@EITHER_ENGINE
@pytest.mark.parametrize("parallelism", [1, 2])
def test_words_are_counted_and_looked_up(cluster, parallelism):
    counts = HashState("counts")
    spout = FixedBatchesSpout(LINES, ["line"])
    words = stream(spout, "lines", parallelism).flat_map(str.split, to="word").filter(is_word)
    words.count_by("word", into=counts)
    first = words.distinct_by("word", into=SetState("seen"))
    first.key_by(lambda word: 10 * len(word)).count_by("key", into=HashState("lengths", field=int))
    known = words.enrich(counts, by="word", to="before", as_of="transaction").filter(
        lambda before: before is not None, of="before"
    )
    known.max_by("word", "before", into=HashState("before"))
    cluster.run(words.topology("short_form", parallelism=parallelism), commit_group_max=7)

    expected = Counter(word for batch in LINES for (line,) in batch for word in line.split() if not word.isdigit())
    assert cluster.hash("{short_form}:counts") == expected
    assert {int(length): count for length, count in cluster.hash("{short_form}:lengths").items()} == {20: 3, 30: 1}
    assert cluster.hash("{short_form}:before") == {word: count * 9 // 10 for word, count in expected.items()}
