"""A run in the background on Spark: on its own thread, watched, drained, and not harmed by what cells do."""

from __future__ import annotations

import threading

import pytest

from coordinator import RunOptions, start
from tests.support.spark.bolts import exact_counts, numbers_topology

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

    with begin() as run:
        assert committed.wait(LONG_S)
        assert run.statistics.committed >= 3
        assert run.statistics.components["work"].work.batches > 0
    first = run.result(LONG_S)
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
    run = start(topology, spark=cluster.context, redis_url=cluster.redis_url, options=options, on_progress=cancel)
    assert run.result(LONG_S).committed == 20
    assert cancelled.is_set()
    assert cluster.hash("{numbers}:counts") == exact_counts(20)
