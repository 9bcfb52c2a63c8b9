"""One topology, two engines: what Spark commits, the local engine commits."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from benchmarks.task_counts import with_tasks
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.run import run
from coordinator.topology.building.topology import Topology
from examples import ledger, top_k, word_count
from state.kinds.handles import DeclaredState, declared_states
from state.redis_admin.snapshots import snapshot

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
