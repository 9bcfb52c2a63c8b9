"""On Spark, too: a fault at the edge of a spout that workers call is the user's, and named."""

from __future__ import annotations

import pytest

from coordinator.spouts.memory import MemoryTransactionalSpout
from state.errors import UserCodeError
from tests.support.topologies.components import Commit, collecting

pytestmark = [pytest.mark.spark, pytest.mark.redis]


class WithoutEmitter(MemoryTransactionalSpout):
    def get_emitter(self, conf, context):
        return None


class RaisingEmitter(MemoryTransactionalSpout):
    def get_emitter(self, conf, context):
        raise ZeroDivisionError("mine")


@pytest.mark.parametrize(
    ("kind", "story"),
    [
        (WithoutEmitter, "get_emitter returned None; return an instance of a subclass of PartitionedEmitter"),
        (RaisingEmitter, "ZeroDivisionError: mine"),
    ],
)
def test_a_fault_at_an_edge_is_the_users_and_named(cluster, kind, story):
    topology = collecting("edges", kind([[["a"]]], ["line"], 1), Commit(), source="lines")
    with pytest.raises(UserCodeError, match=story) as caught:
        cluster.run(topology)
    assert "component 'lines'" in str(caught.value)
