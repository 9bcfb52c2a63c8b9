"""Executors that come late: what waits for them is blamed on no batch, and a run does not wait for ever."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from coordinator.engines.spark.cluster import running_jobs
from state.errors import EngineError
from tests.support.spark.bolts import exact_counts, numbers_topology
from tests.support.spark.plain_jobs import Feed, Seen, builder_of, run

pytestmark = [pytest.mark.spark, pytest.mark.redis]
TIMEOUT_S = 3.0
MESSAGE_TIMEOUT_S = 8.0
"""Less than three looks at a wait of `TIMEOUT_S` take, and enough for a worker that starts on a busy machine."""
LONG_S = 60.0


class Occupied(logging.Handler):
    """A job of somebody else's that has every slot of a cluster until the run has said three times that it waits.

    Args:
        context: the Spark context.
        gate: a file, which ends the job.
    """

    def __init__(self, context, gate):
        super().__init__()
        self._context, self._gate = context, gate
        self._count = 0
        self._thread = threading.Thread(target=self._occupy)

    def __enter__(self):
        self._thread.start()
        tracker, deadline = self._context.statusTracker(), time.monotonic() + LONG_S
        while not any(stage and stage.numActiveTasks == 2 for stage in _active_stages(tracker)):
            assert time.monotonic() < deadline
            time.sleep(0.05)  # there is no event to wait for
        logging.getLogger("txbatch").addHandler(self)
        return self

    def __exit__(self, *raised):
        logging.getLogger("txbatch").removeHandler(self)
        self._gate.touch()
        self._thread.join()

    def emit(self, record):
        self._count += "waiting for executors" in record.getMessage()
        if self._count == 3:
            self._gate.touch()

    def _occupy(self):
        gate = self._gate

        def hold(_):
            while not gate.exists():
                time.sleep(0.05)
            return []

        self._context.setJobGroup("somebody else's", "has every slot")
        self._context.parallelize([0, 1], 2).mapPartitions(hold).collect()


def _active_stages(tracker):
    return [tracker.getStageInfo(stage_id) for stage_id in tracker.getActiveStageIds()]


@pytest.fixture
def occupied(cluster, monkeypatch):
    monkeypatch.setattr(running_jobs, "LOG_AFTER_S", TIMEOUT_S)
    monkeypatch.setattr(running_jobs, "LOG_EVERY_S", TIMEOUT_S)
    with Occupied(cluster.context, cluster.notes / "gate") as occupied:
        yield occupied


@pytest.mark.nightly
def test_batches_that_waited_for_executors_are_neither_failed_nor_quarantined(cluster, occupied):
    topology = numbers_topology(4, message_timeout_s=MESSAGE_TIMEOUT_S)
    found = cluster.run(topology, on_poison="quarantine", max_attempts=1)
    assert cluster.hash("{numbers}:counts") == exact_counts(4)
    assert (found.committed, found.quarantined, found.failed_attempts) == (4, [], 0)


@pytest.mark.nightly
def test_messages_of_a_plain_topology_that_waited_for_executors_are_not_failed(cluster, occupied):
    Feed.told.clear()
    path = cluster.notes / "seen"
    builder = builder_of([1, 2, 3])
    builder.set_bolt("seen", Seen(str(path))).shuffle_grouping("feed")
    builder.set_message_timeout_s(MESSAGE_TIMEOUT_S)
    run(cluster.context, builder.build())
    assert sorted(Feed.told) == [("ack", 0), ("ack", 1), ("ack", 2)]


@pytest.mark.nightly
def test_a_run_that_gets_no_executor_ends_and_says_so(cluster, occupied):
    with pytest.raises(EngineError, match="the cluster gives the run no executor, or all of them are busy"):
        cluster.run(numbers_topology(4), executors_timeout_s=TIMEOUT_S)
    assert cluster.hash("{numbers}:counts") == {}
