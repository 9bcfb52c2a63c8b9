"""A run starts Spark for waves; one that needs none is done before."""

from __future__ import annotations

import pytest

from coordinator.run import run
from state.errors import TopologyError
from tests.support.spark.bolts import exact_counts, numbers_topology

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def test_a_run_with_nothing_to_do_is_done_without_spark_and_one_with_more_to_do_starts_it(cluster):
    cluster.run(numbers_topology(2))
    steps: list[str] = []
    elsewhere = {"redis_url": cluster.redis_url, "master": "spark://127.0.0.1:1", "on_step": steps.append}
    done = run(numbers_topology(2), **elsewhere)
    assert (done.committed, done.last_txid) == (0, 2)
    assert not [step for step in steps if "Spark" in step]
    with pytest.raises(TopologyError, match=r"is running in this process, .* and pass it to both runs as spark="):
        run(numbers_topology(3), **elsewhere)
    assert cluster.run(numbers_topology(3)).committed == 1
    assert cluster.hash("{numbers}:counts") == exact_counts(3)


def test_a_run_that_cannot_start_spark_does_not_take_the_topology_from_one_that_is_connected(cluster):
    cluster.run(numbers_topology(2))
    cluster.client.client_setname("txbatch:run:numbers")
    before = cluster.client.hget("{numbers}:txbatch:control", "fence")
    with pytest.raises(TopologyError, match="is running in this process"):
        run(numbers_topology(2), redis_url=cluster.redis_url, master="spark://127.0.0.1:1")
    assert cluster.client.hget("{numbers}:txbatch:control", "fence") == before
