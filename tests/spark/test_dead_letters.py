"""Dead letters on Spark are those of a plain loop, whether commits run with their wave or in a job of their own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from state.commits.dead_letters import DeadLetter
from state.redis_admin.topology import RedisTopology
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.topologies import checked_orders
from tests.support.topologies.orders import write_orders
from tests.support.topologies.refusing import AddBlindly, AddReading, expected_letters, refused_by, refusing

pytestmark = [pytest.mark.spark, pytest.mark.redis, EITHER_ENGINE]

BATCHES = [[number * 100 + step for step in range(1, 12)] for number in range(7)]


def letters_of(cluster, topology_id: str) -> list[DeadLetter]:
    with closing(RedisTopology(cluster.redis_url, topology_id)) as looked_at:
        return list(looked_at.dead_letters.all())


@pytest.mark.often("two levels-one job-local", "two levels-two jobs-local")
@pytest.mark.parametrize("adds", [AddBlindly(), AddReading()], ids=["one job", "two jobs"])
@pytest.mark.parametrize(
    "below", [pytest.param(False, marks=pytest.mark.nightly), True], ids=["one level", "two levels"]
)
def test_every_refused_tuple_is_stored_once(cluster, adds, below):
    statistics = cluster.run(refusing(BATCHES, adds=adds, below=below), commit_group_max=3)
    expected, total = expected_letters(BATCHES, below=below)
    assert refused_by(letters_of(cluster, "refusing")) == expected
    assert statistics.dead_letters == len(expected)
    assert cluster.hash("{refusing}:sums") == {"sum": total}


def test_letters_are_replayed_on_spark_and_the_input_continues_afterwards(cluster, tmp_path: Path):
    write_orders(tmp_path / "a.jsonl", 300, seed=3, limit=50)
    cluster.run(checked_orders.topology(str(tmp_path / "a.jsonl"), 40, limit=50, parallelism=2))
    over_limit = sum(letter.component_id == "add" for letter in letters_of(cluster, "checked_orders"))
    assert over_limit > 50

    generous = checked_orders.topology(str(tmp_path / "a.jsonl"), 40, limit=10**9, parallelism=2)
    done = cluster.run(generous, republish_letters=["add"])
    assert (done.republished_letters, done.committed) == (over_limit, 1)
    assert {letter.component_id for letter in letters_of(cluster, "checked_orders")} == {"orders", "check"}
    valid = sum(cents for cents in cluster.hash("{checked_orders}:cents").values())
    everything = write_orders(tmp_path / "b.jsonl", 300, seed=3, limit=10**9)
    assert valid == sum(everything.cents.values())

    assert cluster.run(generous).committed == 0
