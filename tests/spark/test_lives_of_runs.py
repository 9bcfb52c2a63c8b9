"""The life of a run on Spark: in the background, with nothing to do, dropped by somebody else."""

from __future__ import annotations

import threading

import pytest

from coordinator import RunOptions, run, start
from state import HashState
from state.errors import FencedError, TopologyError
from state.redis_owner.store import RedisStore
from tests.support.spark.bolts import Store, exact_counts, numbers_topology
from tests.support.stores.admin import admin_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

LONG_S = 60.0
ENDLESS = 10**9


def test_a_run_is_watched_and_drained_and_the_next_one_continues(cluster):
    committed = threading.Event()

    def look(statistics):
        if statistics.committed >= 3:
            committed.set()

    def begin(**options):
        limits = RunOptions(max_spout_pending=4, **options)
        where = {"spark": cluster.context, "redis_url": cluster.redis_url}
        return start(numbers_topology(ENDLESS), options=limits, on_progress=look, **where)

    with begin() as begun:
        assert committed.wait(LONG_S)
        assert begun.statistics.committed >= 3
        assert begun.statistics.components["work"].work.batches > 0
    first = begun.result(LONG_S)
    assert first.is_interrupted
    assert cluster.hash("{numbers}:counts") == exact_counts(first.last_txid)
    more = first.last_txid + 5
    second = begin(last_txid=more)
    assert second.result(LONG_S).committed == 5
    assert cluster.hash("{numbers}:counts") == exact_counts(more)
    assert second.statistics.history.waves.points() != []


def test_ctrl_c_in_another_cell_costs_attempts_and_no_transaction(cluster):
    """pyspark's own handler of Ctrl-C cancels all jobs of the session, whoever has started them."""
    cancelled = threading.Event()

    def cancel(statistics):
        if statistics.committed >= 3 and not cancelled.is_set():
            threading.Thread(target=cluster.context.cancelAllJobs).start()
            cancelled.set()

    topology = numbers_topology(20)
    options = RunOptions(max_spout_pending=4)
    begun = start(topology, spark=cluster.context, redis_url=cluster.redis_url, options=options, on_progress=cancel)
    assert begun.result(LONG_S).committed == 20
    assert cancelled.is_set()
    assert cluster.hash("{numbers}:counts") == exact_counts(20)


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


class ReadingStore(Store):
    """Reads what it has counted, so that an executor learns of the drop first."""

    seen = HashState("seen", value=int)

    def finish_batch(self):
        super().finish_batch()
        self.seen.put("batches", (self.seen.get("batches") or 0) + 1)


@pytest.mark.parametrize("store", [Store, ReadingStore])
def test_a_run_whose_topology_is_dropped_says_so_and_leaves_nothing(cluster, store):
    connected: list[int] = []
    topology = numbers_topology(40, store=store())

    def drop_it(statistics):
        if statistics.committed >= 4 and not connected:
            dropping = RedisStore(cluster.redis_url, topology.topology_id)
            connected.append(admin_of(dropping).connected_runs())
            admin_of(dropping).drop()
            dropping.close()

    with pytest.raises(FencedError, match=f"topology '{topology.topology_id}' was dropped during this run"):
        cluster.run(topology, max_spout_pending=4, on_progress=drop_it)

    assert connected == [1]
    assert cluster.client.keys() == []
