"""Every kind of transactional spout tuple by tuple, on the real store: opaque ones, told ones, paused ones."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.opaque import OpaquePartitionedEmitter
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state.errors import UserCodeError
from tests.support.runs.whole_runs import Count0
from tests.support.topologies.components import Pass

ROWS = [[[f"{partition}/{number}", number] for number in range(7)] for partition in range(3)]
EXACT = {f"{partition}/{number}": 1 for partition in range(3) for number in range(7)} | {"all": 21}
FIELDS = ["line", "number"]


class Committer(SpoutCommitter):
    told: ClassVar[list[int]] = []
    raising: ClassVar[list[int]] = []

    def commit(self, attempt):
        Committer.told.append(attempt.txid)
        if attempt.txid in Committer.raising:
            raise ValueError("mine")


class ToldSpout(FixedBatchesSpout, ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        return Committer()


class Reluctant(OpaqueMemoryTransactionalSpout):
    """Leaves a position as it was by None, which says the same as giving it back."""

    def get_emitter(self, conf, context):
        return ReluctantEmitter(super().get_emitter(conf, context))


class ReluctantEmitter(OpaquePartitionedEmitter):
    def __init__(self, emitter):
        self.emitter = emitter

    def emit_partition_batch(self, attempt, collector, partition, last):
        position = self.emitter.emit_partition_batch(attempt, collector, partition, last)
        return None if position == last else position


def topology(spout: Any, tasks: int = 2):
    builder = TransactionalTopologyBuilder("kinds", "lines", spout, parallelism=tasks)
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count0(), 2).fields_grouping("pass", ["line"])
    return builder.build()


@pytest.mark.parametrize("committed", [1, 2, 3])
def test_what_a_partitioned_spout_has_stored_and_not_committed_is_nothing_to_the_opaque_one_that_follows(
    cluster, committed
):
    away_at_first = {txid: [0, 1] for txid in range(1, 8)}
    options = RunOptions(max_spout_pending=8, commit_group_max=1)
    first = cluster.submit(topology(MemoryTransactionalSpout(ROWS, FIELDS, 2)), options=options)
    while first.statistics.committed < committed:
        first.tick()
    first.close()
    assert b"partition.0:4" in cluster.client.hkeys("{kinds}:txbatch:metadata"), "processed, and not committed"
    spout = Reluctant(ROWS, FIELDS, 2, unavailable=away_at_first)
    run = cluster.submit(topology(spout), options=RunOptions(max_spout_pending=2, adopt=True))
    run.run_until_idle()
    assert run.is_done
    assert run.state("counts0") == EXACT
    stored = cluster.client.hkeys("{kinds}:txbatch:metadata")
    assert sorted(field.partition(b":")[0] for field in stored) == [b"partition.0", b"partition.1", b"partition.2"]


@pytest.mark.case(id="P-08")
def test_after_a_run_that_ended_before_it_told_the_next_one_tells_the_whole_group(cluster):
    Committer.told[:], Committer.raising[:] = [], [2]
    spout = ToldSpout([[["a", 1]]] * 5, FIELDS)
    options = RunOptions(max_spout_pending=6)
    with pytest.raises(UserCodeError, match="mine"):
        cluster.submit(topology(spout), options=options).run_until_idle()
    assert Committer.told == [1, 2]
    Committer.raising.clear()
    run = cluster.submit(topology(spout), options=options)
    run.run_until_idle()
    assert Committer.told == [1, 2, 1, 2, 3, 4, 5]
    assert run.state("counts0") == {"a": 5, "all": 5}


def test_a_paused_run_is_idle_and_goes_on_when_it_is_activated(cluster):
    run = cluster.submit(topology(FixedBatchesSpout([[["a", 1]]] * 5, FIELDS)))
    while run.statistics.committed < 2:
        run.tick()
    run.deactivate()
    run.run_until_idle()
    assert not run.is_done
    assert 2 <= run.statistics.committed < 5
    run.activate()
    run.run_until_idle()
    assert run.is_done
    assert run.state("counts0") == {"a": 5, "all": 5}
