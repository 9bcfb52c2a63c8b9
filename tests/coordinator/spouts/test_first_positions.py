"""Where partitions begin is said once by the driver, stored before anything is emitted, and kept by every attempt."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from coordinator import OpaquePartitionedEmitter, PartitionedCoordinator, PartitionedEmitter
from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.verifier import Verifier
from state import FailedException, FencedError, ListState, SourceError, UserCodeError
from state.redis_admin.topology import RedisTopology
from tests.support.runs.collecting import Collecting
from tests.support.topologies.components import collecting
from tests.support.topologies.spout_kinds import OpaqueSpout, PartitionedSpout

LEFT_OUT = -1
"""A row that was there before the first run began."""


class Log:
    """Two logs that grow meanwhile.

    Attributes:
        rows: of each partition.
        asked: what `first_positions` was given.
        answers: what it returns or raises; once they are used up, the ends of the logs.
        faults: what an emitter raises, after which there is one row more.
    """

    rows: ClassVar[list[list[int]]] = []
    asked: ClassVar[list[Any]] = []
    answers: ClassVar[list[Any]] = []
    faults: ClassVar[list[Exception]] = []


@pytest.fixture(autouse=True)
def fresh():
    Log.rows[:] = [[LEFT_OUT, LEFT_OUT], []]
    Log.asked.clear()
    Log.answers.clear()
    Log.faults.clear()


class AtEnds(PartitionedCoordinator):
    def number_of_partitions(self):
        return len(Log.rows)

    def first_positions(self):
        Log.asked.append(dict(self.run_so_far.positions))
        answer = Log.answers.pop(0) if Log.answers else {each: len(rows) for each, rows in enumerate(Log.rows)}
        if isinstance(answer, Exception):
            raise answer
        return answer

    def is_ready(self):
        return self.run_so_far.last_txid < 1 and any(max(rows, default=LEFT_OUT) > LEFT_OUT for rows in Log.rows)


class OpaqueToEnds(OpaquePartitionedEmitter):
    def emit_partition_batch(self, attempt, collector, partition, last):
        if Log.faults:
            Log.rows[0].append(1)
            raise Log.faults.pop()
        collector.emit_all([[row, partition] for row in Log.rows[partition][last or 0 :]])
        return len(Log.rows[partition])


class PartitionedToEnds(PartitionedEmitter):
    def emit_partition_batch_new(self, attempt, collector, partition, last):
        return OpaqueToEnds().emit_partition_batch(attempt, collector, partition, last)

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        raise AssertionError("what is cut in these tests is committed at once")


class Keep(Collecting):
    rows = ListState("rows", value=int)

    def finish_batch(self):
        self.rows.extend(sorted(tup[0] for tup in self.tuples))


@pytest.fixture(params=[OpaqueSpout(AtEnds, OpaqueToEnds), PartitionedSpout(AtEnds, PartitionedToEnds)])
def spout(request):
    return request.param


def submit(cluster, spout):
    return cluster.submit(collecting("begins", spout, Keep(), source="log"))


def first_stored(cluster):
    return {name.decode() for name in cluster.client.hkeys("{begins}:txbatch:metadata") if name.endswith(b":0")}


def weights(cluster):
    topology = RedisTopology("redis://fake", "begins", client=cluster.client)
    return {finding.weight for finding in Verifier(topology.records()).verify().findings}


def test_it_is_stored_before_anything_is_cut_and_a_replay_begins_there_though_the_log_has_grown(cluster, spout):
    run = submit(cluster, spout)
    run.run_until_idle()
    assert (run.attempts(), first_stored(cluster)) == ([], {"partition.0:0", "partition.1:0"})
    assert weights(cluster) == {Weight.OK}
    Log.rows[0] += [0]
    Log.faults[:] = [FailedException("brokers are away")]
    run.run_until_idle()
    assert run.state("rows") == [0, 1]
    assert Log.asked == [{}]
    assert first_stored(cluster) == set()
    assert weights(cluster) == {Weight.OK}


def test_a_run_that_dies_before_it_cuts_anything_leaves_where_it_began(cluster, spout):
    submit(cluster, spout).tick()
    Log.rows[0] += [0]
    again = submit(cluster, spout)
    again.run_until_idle()
    assert again.state("rows") == [0]
    assert [asked.keys() for asked in Log.asked] == [set(), {0, 1}]


def test_a_run_that_has_lost_the_topology_stores_no_first_positions(cluster, spout):
    Log.answers[:] = [FailedException("not now")]
    former = submit(cluster, spout)
    former.tick()
    submit(cluster, spout).tick()
    cluster.client.hdel("{begins}:txbatch:metadata", "partition.0:0", "partition.1:0")
    with pytest.raises(FencedError):
        former.tick()
    assert first_stored(cluster) == set()


def test_a_run_killed_before_its_first_commit_leaves_where_it_began(cluster, spout):
    run = submit(cluster, spout)
    run.tick()
    Log.rows[0] += [0]
    Log.faults[:] = [SourceError("killed")]
    with pytest.raises(SourceError, match="killed"):
        run.run_until_idle()
    assert first_stored(cluster) == {"partition.0:0", "partition.1:0"}
    assert weights(cluster) == {Weight.OK}
    again = submit(cluster, spout)
    again.run_until_idle()
    assert again.state("rows") == [0, 1]
    assert [asked.keys() for asked in Log.asked] == [set(), {0, 1}]


def test_a_spout_that_cannot_say_it_yet_is_asked_again_and_nothing_is_cut_before(cluster, spout):
    Log.answers[:] = [FailedException("not now"), FailedException("not now")]
    Log.rows[1] += [0]
    run = submit(cluster, spout)
    run.tick()
    run.tick()
    assert (len(Log.asked), run.attempts()) == (2, [])
    run.run_until_idle()
    assert (len(Log.asked), len(run.attempts())) == (3, 1)


def test_partitions_that_are_left_out_begin_at_their_first_row(cluster, spout):
    Log.answers[:] = [{0: 2}]
    Log.rows[1] += [0, 1]
    run = submit(cluster, spout)
    run.run_until_idle()
    assert run.state("rows") == [0, 1]


@pytest.mark.parametrize("answer", [None, [1], {"0": 1}, {-1: 1}, {0: object()}])
def test_an_answer_that_is_not_plain_positions_by_partition_is_refused(cluster, spout, answer):
    Log.answers[:] = [answer]
    with pytest.raises(UserCodeError, match="first_positions"):
        submit(cluster, spout).run_until_idle()
