"""Which kind of spout something is, and what follows from it: answered in one place."""

from copy import copy
from typing import Any

import pytest

from coordinated_bolt import TopologyContext
from coordinated_bolt.user_traceback import WrongAnswerError
from coordinator import IOpaquePartitionedTransactionalSpout, RunSoFar, TransactionalTopologyBuilder
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator
from state import TopologyError

SPOUTS = {
    "transactional": lambda: FixedBatchesSpout([[["a"]]], fields=["word"]),
    "partitioned": lambda: MemoryTransactionalSpout({0: [["a"]]}, fields=["word"], take=1),
    "opaque": lambda: OpaqueMemoryTransactionalSpout({0: [["a"]]}, fields=["word"], take=1),
}


CONTEXT = TopologyContext("test", "lines", task_index=0, task_count=1, task_id=1, tasks_of={"lines": (1,)})


class Silent(SpoutCommitter):
    def commit(self, attempt):
        raise AssertionError("nothing is committed here")


class Told(ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        return Silent()


def told_like(spout):
    """The same spout with a committer."""
    told = copy(spout)
    told.__class__ = type("ToldSpout", (Told, type(spout)), {})
    return told


@pytest.mark.parametrize(
    ("kind", "is_opaque", "has_partitions"),
    [("transactional", False, False), ("partitioned", False, True), ("opaque", True, True)],
)
def test_each_interface_has_one_kind_which_a_run_can_use_with_or_without_a_committer(kind, is_opaque, has_partitions):
    spout = SPOUTS[kind]()
    plain, told = SpoutKind(spout), SpoutKind(told_like(spout))
    assert (plain.is_opaque, plain.has_partitions) == (is_opaque, has_partitions)
    assert isinstance(plain.coordinator({}, CONTEXT), SpoutCoordinator)
    assert (plain.has_committer, plain.committer({}, CONTEXT)) == (False, None)
    assert told.has_committer
    assert isinstance(told.committer({}, CONTEXT), Silent)


def test_what_implements_no_interface_is_refused():
    message = "str is not a transactional spout; implement one of ITransactionalSpout, IPartitioned.*, IOpaque.*"
    with pytest.raises(TopologyError, match=message):
        SpoutKind("lines")


class Silently:
    output_fields: Any = ("word",)

    def get_emitter(self, conf, context):
        raise AssertionError("nothing is emitted here")


class Whole(Silently, SpoutCoordinator):
    def is_ready(self):
        return self.run_so_far.last_txid < 1

    def initialize_transaction(self, txid, previous):
        return ["a"]


class OfOnePartition(Silently, PartitionedCoordinator):
    def number_of_partitions(self):
        return 1


class OneBatch(Whole, ITransactionalSpout):
    """Is its own coordinator."""


class OnePartition(OfOnePartition, IPartitionedTransactionalSpout):
    """So is this."""


class OneOpaque(OfOnePartition, IOpaquePartitionedTransactionalSpout):
    """And this."""


class WrongKind(Whole, IPartitionedTransactionalSpout):
    """Is a coordinator without partitions."""


class Headless(Silently, ITransactionalSpout):
    """Has none."""


@pytest.mark.parametrize("spec_class", [OneBatch, OnePartition, OneOpaque])
def test_a_spec_may_be_its_own_coordinator_and_each_run_asks_a_copy(spec_class):
    spec = spec_class()
    TransactionalTopologyBuilder("test", "lines", spec)
    first, second = (SpoutKind(spec).coordinator({}, CONTEXT) for _ in range(2))
    first.run_so_far = RunSoFar(7)
    assert (type(first), second.run_so_far, spec.run_so_far) == (spec_class, RunSoFar(), RunSoFar())


def test_a_spec_without_a_coordinator_is_refused_when_the_topology_is_built():
    message = "spout 'lines' has no coordinator; define get_coordinator in class Headless, or derive it from Spout.*"
    with pytest.raises(TopologyError, match=message):
        TransactionalTopologyBuilder("test", "lines", Headless())


def test_a_partitioned_spec_that_is_a_coordinator_without_partitions_is_refused_by_name():
    with pytest.raises(WrongAnswerError, match=r"get_coordinator returned .* subclass of PartitionedCoordinator"):
        SpoutKind(WrongKind()).coordinator({}, CONTEXT)
