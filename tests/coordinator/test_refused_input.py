"""What is given to the wrong place, or of the wrong type, is refused in a sentence that says what to give."""

from __future__ import annotations

from typing import Any

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.run import run
from coordinator.run_plain import run_plain
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state.errors import TopologyError
from tests.support.approved import approved, refusals
from tests.support.case_names import shown
from tests.support.topologies.plain_components import Identity, fed_builder

NOWHERE = "redis://localhost:1"


class Count(BaseBatchBolt):
    output_fields = ("value",)

    def execute(self, tup):
        pass

    def finish_batch(self):
        pass


def transactional_builder():
    builder = TransactionalTopologyBuilder("t", "spout", FixedBatchesSpout([[["x"]]], ["value"]))
    builder.set_bolt("count", Count()).shuffle_grouping("spout")
    return builder


def plain_builder():
    builder = fed_builder()
    builder.set_bolt("bolt", Identity()).shuffle_grouping("spout")
    return builder


def anything(value: object) -> Any:
    """A value of a type that a type checker would refuse."""
    return value


def submitted(topology, **given):
    with LocalCluster() as cluster:
        cluster.submit(topology, **given)


def sub_topology(builder):
    batches = BatchSubtopologyBuilder("master", Count())
    batches.set_bolt("behind", Count()).shuffle_grouping("master")
    batches.extend_topology(builder)


def configured(values):
    transactional_builder().spout_declarer.add_configurations(values)


WRONG = {
    "a builder to a cluster": lambda: submitted(transactional_builder()),
    "nothing to a cluster": lambda: submitted(None),
    "a plain topology to run": lambda: run(plain_builder().build(), redis_url=NOWHERE),
    "a transactional one to run_plain": lambda: run_plain(transactional_builder().build()),
    "a builder to run_plain": lambda: run_plain(plain_builder()),
    "options to a plain run": lambda: submitted(plain_builder().build(), options=RunOptions()),
    "a frame fault to a plain run": lambda: submitted(plain_builder().build(), frame_fault=list),
    "by_hand to transactions": lambda: submitted(transactional_builder().build(), by_hand=["count"]),
    "by_hand as text": lambda: submitted(plain_builder().build(), by_hand="bolt"),
    "a sub-topology in transactions": lambda: sub_topology(transactional_builder()),
    "a fill time as text": lambda: PlainRunOptions(wave_fill_s=anything("0.2")),
    "a grouping by name": lambda: transactional_builder().set_bolt("x", Count()).grouping("spout", "shuffle"),
    "configurations as a list": lambda: configured(["a"]),
    "partitions as a number": lambda: MemoryTransactionalSpout(anything(5), ["a"], 1),
    "partitions away as a list": lambda: OpaqueMemoryTransactionalSpout([[["a"]]], ["a"], 1, unavailable=anything([1])),
    "batches as a number": lambda: FixedBatchesSpout(anything(3), ["a"]),
    "a batch of nothing": lambda: FixedBatchesSpout([anything(None)], ["a"]),
}


def test_what_is_given_to_the_wrong_place_is_refused():
    approved(refusals(WRONG, TopologyError), "given-to-the-wrong-place")


@pytest.mark.parametrize("capacity", ["5", 0, True, 1.5], ids=shown)
def test_a_receive_capacity_is_a_number_from_1(capacity):
    with pytest.raises(ValueError, match="receive capacity"):
        LocalCluster(receive_capacity=capacity).submit(plain_builder().build())


def test_a_cluster_without_a_seed_would_have_no_schedule_to_repeat():
    with pytest.raises(TypeError, match="seed is None; give an integer"):
        LocalCluster(seed=anything(None))
