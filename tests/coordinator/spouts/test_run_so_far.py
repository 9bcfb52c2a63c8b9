"""What coordinators know when they are asked: how far the run is, and what earlier runs have noted."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, ClassVar

import pytest

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import LocalCluster, OpaquePartitionedEmitter, RunOptions, SpoutCoordinator, SpoutEmitter
from coordinator.spouts.partitioned import PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar
from state import UserCodeError
from tests.support.topologies.components import Count, build, collecting
from tests.support.topologies.spout_kinds import OpaqueSpout, PartitionedSpout, WholeSpout


class Limited:
    """Is ready for `limit` transactions, judging only by what the run tells it; writes that down."""

    limit: ClassVar[int] = 3
    told: ClassVar[list[RunSoFar]] = []
    run_so_far: RunSoFar

    def is_ready(self):
        Limited.told.append(self.run_so_far)
        return self.run_so_far.last_txid < Limited.limit

    def number_of_partitions(self):
        return 2


class CutsTxids(Limited, SpoutCoordinator):
    def initialize_transaction(self, txid, previous):
        return f"cut {txid}"


class CountsParts(Limited, PartitionedCoordinator):
    """Transactions of two partitions."""


class EmitsTxid(SpoutEmitter, PartitionedEmitter, OpaquePartitionedEmitter):
    """One tuple of each batch, whatever the kind."""

    def emit_batch(self, attempt, metadata, collector):
        collector.emit([f"tx {attempt.txid}", 0])

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        collector.emit([f"tx {attempt.txid}", partition])
        return attempt.txid

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        collector.emit([f"tx {attempt.txid}", partition])
        return attempt.txid


KINDS = {
    "plain": (WholeSpout(CutsTxids, EmitsTxid), "cut {}"),
    "partitioned": (PartitionedSpout(CountsParts, EmitsTxid), 2),
    "opaque": (OpaqueSpout(CountsParts, EmitsTxid), 2),
}


@pytest.fixture(autouse=True)
def nothing_told_yet():
    Limited.limit, Limited.told = 3, []


def metadata_of(kind, txid):
    form = KINDS[kind][1]
    return None if txid == 0 else form.format(txid) if isinstance(form, str) else form


def submit(cluster, kind, max_pending=8):
    topology = build(("count", Count(), ["lines"]), spout=KINDS[kind][0])
    return cluster.submit(topology, options=RunOptions(max_spout_pending=max_pending))


def known(told):
    return told.last_txid, told.last, told.committed_txid


@pytest.mark.parametrize("kind", KINDS)
def test_each_question_tells_what_was_cut_and_what_was_committed(cluster, kind):
    run = submit(cluster, kind, 1)
    run.run_until_idle()
    assert run.statistics.last_txid == 3
    first_told = list(dict.fromkeys(map(known, Limited.told)))
    assert first_told == [(txid, metadata_of(kind, txid), txid) for txid in (0, 1, 2, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_and_not_committed_is_pending(cluster, kind):
    run = submit(cluster, kind, 4)
    run.hold("processing")
    run.run_until_idle()
    assert [(told.last_txid, told.in_flight) for told in Limited.told[:4]] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    run.ack(1)
    Limited.limit = 4
    run.run_until_idle()
    assert known(Limited.told[-1]) == (4, metadata_of(kind, 4), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restarted_coordinator_knows_what_earlier_runs_have_cut_and_committed(cluster, kind):
    run = submit(cluster, kind, 4)
    run.hold("commit", 3)
    run.run_until_idle()
    run.close()
    Limited.told, Limited.limit = [], 5
    run = submit(cluster, kind, 1)
    run.run_until_idle()
    assert run.statistics.last_txid == 5
    # asked for what is not stored yet: an opaque spout stores nothing before the commit
    assert known(Limited.told[0]) == ((2, None, 2) if kind == "opaque" else (3, metadata_of(kind, 3), 3))


@pytest.mark.parametrize("kind", KINDS)
def test_replays_never_make_a_spout_cut_more_or_less_than_it_is_ready_for(kind):
    for seed in range(10):
        random = Random(seed)
        Limited.limit = 5
        with LocalCluster(seed=seed) as cluster:
            run = submit(cluster, kind, 3)
            run.hold("processing")
            run.run_until_idle()
            for _ in range(4):
                run.fail(random.choice(run.held()).attempt.txid)
                run.run_until_idle()
            run.release("processing")
            run.run_until_idle()
            assert run.statistics.last_txid == 5
            assert set(run.state("counts")) == {f"tx {txid}" for txid in range(1, 6)}


class NotingCoordinator(SpoutCoordinator):
    """Notes each transaction under one of two names."""

    def __init__(self, log: list[Any], count: int) -> None:
        self.log, self.count = log, count

    def resume(self):
        notes: Any = self.run_so_far.notes
        self.log.append(dict(notes))
        notes["changed"] = "by the spout, in a copy"
        self.log.append(self.run_so_far.last_txid)

    def is_ready(self):
        return self.run_so_far.last_txid < self.count

    def is_exhausted(self):
        return not self.is_ready()

    def initialize_transaction(self, txid, previous):
        return txid

    def notes(self, metadata):
        return {"even" if metadata % 2 == 0 else "odd": metadata}

    def compare(self, former: FormerInput) -> InputChange:
        return InputChange(notes={"odd": None}) if former.last_txid == 2 else InputChange()


class NotingEmitter(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        collector.emit(["", metadata])


class NotingSpout(WholeSpout):
    log: ClassVar[list[Any]] = []

    def __init__(self, count):
        super().__init__(partial(NotingCoordinator, NotingSpout.log, count), NotingEmitter)

    def fingerprint(self):
        return "numbers"


class Stop(BaseBatchBolt, ICommitter):
    at: ClassVar[int] = 0

    def execute(self, tup):
        if tup["number"] == Stop.at:
            raise ValueError("stopped by the test")


def noted(cluster: LocalCluster, count: int, adopt: bool | str = False) -> list[Any]:
    NotingSpout.log.clear()
    topology = collecting("noting", NotingSpout(count), Stop())
    made = cluster.submit(topology, options=RunOptions(max_spout_pending=2, adopt=adopt))
    try:
        made.run_until_idle()
    finally:
        made.close()
    return NotingSpout.log


@pytest.mark.parametrize("adopt", [False, "unchecked"])
def test_notes_are_handed_over_before_the_run_goes_on(adopt):
    Stop.at = 0
    with LocalCluster() as cluster:
        assert noted(cluster, 1) == [{}, 0]
        assert noted(cluster, 3, adopt) == [{"odd": 1}, 1]
        Stop.at = 4
        with pytest.raises(UserCodeError):
            noted(cluster, 5, adopt)
        assert NotingSpout.log == [{"odd": 3, "even": 2}, 3]
        Stop.at = 0
        assert noted(cluster, 5, adopt) == [{"odd": 5, "even": 4}, 5], "the fourth and fifth are cut and not committed"


def test_a_note_that_the_comparison_forgets_is_not_handed_over():
    Stop.at = 0
    with LocalCluster() as cluster:
        noted(cluster, 2)
        assert noted(cluster, 2) == [{"even": 2}, 2]
