"""Which kind of spout something is, and what follows from it: answered in one place."""

from copy import copy

import pytest

from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import TopologyError

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
