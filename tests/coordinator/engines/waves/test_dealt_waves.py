"""Stage 0 deals the attempts of a wave over slots that would have nothing to do otherwise."""

from __future__ import annotations

import pytest

from coordinator.engines.waves.process_engine import LocalPlan
from coordinator.engines.waves.stage import EmitterStage, WaveInput
from coordinator.engines.waves.stage_context import StageContext
from coordinator.spouts.batch import Batch
from coordinator.topology.planning.plan import Plan
from state.attempt import TransactionAttempt
from state.codec import pack
from tests.support.scenarios.transfer_spouts import PartitionedSpout
from tests.support.topologies.components import Commit, Pass, build, plan


def one_each(slots: int | None, *, spout_tasks: int = 1, spout: object = None) -> Plan:
    bolts = ("count", Pass(), ["lines"]), ("store", Commit(), ["count"])
    return plan(build(*bolts, spout_tasks=spout_tasks, spout=spout)).in_slots(slots)


def emitting(made: Plan, count: int) -> EmitterStage:
    batches = tuple(Batch(TransactionAttempt(txid, txid), pack(None)) for txid in range(1, count + 1))
    return EmitterStage.of(StageContext(LocalPlan(made)), WaveInput(1, batches))


@pytest.mark.parametrize("slots", [None, 1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_every_attempt_is_emitted_by_one_partition(slots, count):
    stage = emitting(one_each(slots), count)
    parts = [stage.part(partition) for partition in range(stage.partition_count)]
    assert stage.partition_count == min(slots or 1, count)
    assert [place for _, dealt in parts for place in dealt] == list(range(count))
    assert {place for place, _ in parts} == {0}


@pytest.mark.parametrize(("slots", "partitions"), [(2, 2), (5, 4), (6, 6)])
def test_tasks_that_fill_no_slot_alone_share_them(slots, partitions):
    assert emitting(one_each(slots, spout_tasks=2), 10).partition_count == partitions


def test_partitions_of_the_input_are_read_in_order():
    assert emitting(one_each(4, spout=PartitionedSpout("")), 10).partition_count == 1
