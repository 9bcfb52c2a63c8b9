"""What the engine of plain waves makes of a job's end, without a cluster: its context raises."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from coordinated_bolt.transport.frames import WaveId
from coordinator.engines.spark.java.java_watch import JavaWatch
from coordinator.engines.spark.session import SparkLease
from coordinator.plain.plain_engine import PlainWave
from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.spark.spark_plain_engine import SparkPlainEngine
from coordinator.transactional.engine import WaveCrashed
from tests.support.spark.processes import RunningProcess
from tests.support.topologies.plain_components import Identity, fed_builder


class Broadcasted:
    def destroy(self):
        pass


class BrokenContext:
    """Stands in for a Spark context whose connection is broken."""

    master = "local[2]"

    def __init__(self):
        self.cancelled = 0

    def broadcast(self, value):
        return Broadcasted()

    def setLocalProperty(self, name, value):  # noqa: N802 - Spark's name
        pass

    def setJobGroup(self, group, description, interruptOnCancel):  # noqa: N802, N803 - Spark's names
        raise TimeoutError("the gateway does not answer")

    def cancelJobGroup(self, group):  # noqa: N802 - Spark's name
        self.cancelled += 1


@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_a_job_that_raises_a_timeout_of_its_own_is_not_taken_for_one_that_takes_too_long(timeout_s):
    builder = fed_builder()
    builder.set_bolt("bolt", Identity()).shuffle_grouping("spout")
    context: Any = BrokenContext()
    plan = make_plain_plan(builder.build(), lambda _, spec: pickle.dumps(spec))
    with JavaWatch(RunningProcess()) as watch:
        engine = SparkPlainEngine(SparkLease(context, watch), plan, wave_timeout_s=timeout_s)
        try:
            engine.begin(PlainWave(WaveId(1, 1), (), ()))
            ended = engine.end()
        finally:
            engine.close()
    assert ended == WaveCrashed(1, "the gateway does not answer")
    assert context.cancelled == 0
