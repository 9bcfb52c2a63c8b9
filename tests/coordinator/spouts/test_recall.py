"""A coordinator is handed what earlier runs have noted, also of transactions that are not committed."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import FormerInput, InputChange, LocalCluster, RunOptions, TransactionalTopologyBuilder
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.errors import UserCodeError


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
        collector.emit([metadata])


class NotingSpout(ITransactionalSpout):
    output_fields = ("number",)
    log: ClassVar[list[Any]] = []

    def __init__(self, count):
        self.count = count

    def get_coordinator(self, conf, context):
        return NotingCoordinator(NotingSpout.log, self.count)

    def get_emitter(self, conf, context):
        return NotingEmitter()

    def fingerprint(self):
        return "numbers"


class Stop(BaseBatchBolt, ICommitter):
    at: ClassVar[int] = 0

    def execute(self, tup):
        if tup["number"] == Stop.at:
            raise ValueError("stopped by the test")


def run(cluster: LocalCluster, count: int, adopt: bool | str = False) -> list[Any]:
    NotingSpout.log.clear()
    builder = TransactionalTopologyBuilder("noting", "numbers", NotingSpout(count))
    builder.set_committer_bolt("stop", Stop()).global_grouping("numbers")
    made = cluster.submit(builder.build(), options=RunOptions(max_spout_pending=2, adopt=adopt))
    try:
        made.run_until_idle()
    finally:
        made.close()
    return NotingSpout.log


@pytest.mark.parametrize("adopt", [False, "unchecked"])
def test_notes_are_handed_over_before_the_run_goes_on(adopt):
    Stop.at = 0
    with LocalCluster() as cluster:
        assert run(cluster, 1) == [{}, 0]
        assert run(cluster, 3, adopt) == [{"odd": 1}, 1]
        Stop.at = 4
        with pytest.raises(UserCodeError):
            run(cluster, 5, adopt)
        assert NotingSpout.log == [{"odd": 3, "even": 2}, 3]
        Stop.at = 0
        assert run(cluster, 5, adopt) == [{"odd": 5, "even": 4}, 5], "the fourth and fifth are cut and not committed"


def test_a_note_that_the_comparison_forgets_is_not_handed_over():
    Stop.at = 0
    with LocalCluster() as cluster:
        run(cluster, 2)
        assert run(cluster, 2) == [{"even": 2}, 2]
