"""Which kind of spout something is, and what follows from it: answered in one place."""

from copy import copy

import pytest

from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.kinds.kind_of import kind_of
from coordinator.spouts.kinds.opaque_kind import OpaqueKind
from coordinator.spouts.kinds.partitioned_kind import PartitionedKind
from coordinator.spouts.kinds.transactional_kind import TransactionalKind
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import TopologyError

SPOUTS = {
    TransactionalKind: lambda: FixedBatchesSpout([[["a"]]], fields=["word"]),
    PartitionedKind: lambda: MemoryTransactionalSpout({0: [["a"]]}, fields=["word"], take=1),
    OpaqueKind: lambda: OpaqueMemoryTransactionalSpout({0: [["a"]]}, fields=["word"], take=1),
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
    [(TransactionalKind, False, False), (PartitionedKind, False, True), (OpaqueKind, True, True)],
)
def test_each_interface_has_one_kind(kind, is_opaque, has_partitions):
    found = kind_of(SPOUTS[kind]())
    assert (type(found), found.is_opaque, found.has_partitions) == (kind, is_opaque, has_partitions)


@pytest.mark.parametrize("kind", SPOUTS, ids=lambda kind: kind.__name__)
def test_every_kind_may_have_a_committer(kind):
    plain = SPOUTS[kind]()
    assert not kind_of(plain).has_committer
    assert kind_of(plain).committer({}, CONTEXT) is None
    told = told_like(plain)
    assert kind_of(told).has_committer
    assert isinstance(kind_of(told).committer({}, CONTEXT), Silent)


@pytest.mark.parametrize("kind", SPOUTS, ids=lambda kind: kind.__name__)
def test_every_kind_makes_a_coordinator_that_a_run_can_use(kind):
    assert isinstance(kind_of(SPOUTS[kind]()).coordinator({}, CONTEXT), SpoutCoordinator)


def test_what_implements_no_interface_is_refused():
    message = "str is not a transactional spout; implement one of ITransactionalSpout, IPartitioned.*, IOpaque.*"
    with pytest.raises(TopologyError, match=message):
        kind_of("lines")
