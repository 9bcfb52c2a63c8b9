"""The state machine and the metadata log of an opaque spout: nothing is stored before the commit."""

from __future__ import annotations

from itertools import count

import pytest

from coordinated_bolt import AttemptOutcome
from coordinator.guarded_source import GuardedSource
from coordinator.metadata_log import MetadataLog
from coordinator.transactions import EmitBatch, Phase, StartCommit, TransactionCoordinator
from state import FailedException, MetadataChanges, TransactionAttempt
from tests.coordinator.components import LinesCoordinator

STORED = {"partition.0:3": 30, "partition.1:2": 12}


def att(txid, attempt_id):
    return TransactionAttempt(txid, attempt_id)


class Source:
    """Counts partitions: one more each time it is asked."""

    def __init__(self):
        self.log: list[str] = []
        self.is_open = True
        self.failures = 0

    def is_ready(self):
        self.log.append("ready?")
        return self.is_open

    def initialize_transaction(self, txid, previous):
        self.log.append(f"count for {txid}")
        if self.failures:
            self.failures -= 1
            raise FailedException("later")
        return len(self.log)


def machine(window=3):
    return TransactionCoordinator(
        currtx=4,
        metadata={},
        max_spout_pending=window,
        commit_group_max=1,
        new_attempt_id=count(1).__next__,
        is_opaque=True,
    )


def test_nothing_is_stored_before_the_emit():
    decisions = machine().sync(Source())
    assert decisions == [EmitBatch(att(4, 1), 2), EmitBatch(att(5, 2), 4), EmitBatch(att(6, 3), 6)]


def test_every_attempt_is_initialised_anew_and_is_ready_is_asked_once_a_txid():
    source, states = Source(), machine()
    states.sync(source)
    source.log.clear()
    source.is_open = False
    states.fail(att(5, 2), Phase.PROCESSING)
    assert states.sync(source) == [EmitBatch(att(5, 4), 1), EmitBatch(att(6, 5), 2)]
    assert source.log == ["count for 5", "count for 6"]


def test_a_replay_that_cannot_be_initialised_waits_and_leaves_no_gap():
    source, states = Source(), machine()
    states.sync(source)
    states.fail(att(5, 2), Phase.PROCESSING)
    source.failures = 1
    assert states.sync(source) == []
    assert not states.is_idle()
    assert [one.attempt.txid for one in states.sync(source) if isinstance(one, EmitBatch)] == [5, 6]


def test_commits_go_as_ever():
    source, states = Source(), machine(window=1)
    states.sync(source)
    states.ack(att(4, 1), Phase.PROCESSING)
    assert states.sync(source) == [StartCommit((att(4, 1),))]
    states.ack(att(4, 1), Phase.COMMIT)
    assert [type(one) for one in states.sync(source)] == [EmitBatch]
    assert states.currtx == 5


def test_a_source_that_has_raised_is_not_asked_for_replays_either():
    """What is under way commits meanwhile, and each turn of the run would ask."""
    asked = []

    class Broken(LinesCoordinator):
        def initialize_transaction(self, txid, previous):
            asked.append(txid)
            raise ValueError("mine")

    guarded = GuardedSource(Broken(3), "lines")
    for _ in range(3):
        with pytest.raises(FailedException, match="raised"):
            guarded.initialize_transaction(2, None)
    assert asked == [2]


# The log


def outcome(txid, attempt_id=1, **positions):
    return AttemptOutcome(att(txid, attempt_id), metadata={f"partition.{key[1:]}": at for key, at in positions.items()})


def log(stored=STORED):
    return MetadataLog(stored, is_opaque=True, committed_txid=3)


def test_what_emitters_cut_is_known_at_once_and_stored_by_the_commit():
    kept = log()
    assert kept.partition_entries([outcome(4, p0=40), outcome(5, p0=50, p1=15)]) == {}
    assert kept.partitions == {"partition.0": {3: 30, 4: 40, 5: 50}, "partition.1": {2: 12, 5: 15}}
    assert kept.last_positions() == {"partition.0": 50, "partition.1": 15}
    assert kept.last_cut_txid() == 5
    assert kept.commit_changes(4) == MetadataChanges({"partition.0:4": 40}, ("partition.0:3",))
    kept.committed(4)
    assert kept.partitions == {"partition.0": {4: 40, 5: 50}, "partition.1": {2: 12, 5: 15}}
    assert kept.commit_changes(5) == MetadataChanges(
        {"partition.0:5": 50, "partition.1:5": 15}, ("partition.0:4", "partition.1:2")
    )
    kept.committed(5)
    assert kept.partitions == {"partition.0": {5: 50}, "partition.1": {5: 15}}
    assert (kept.last_cut_txid(), kept.last_positions()) == (5, {"partition.0": 50, "partition.1": 15})


def test_of_a_group_only_the_last_position_of_each_partition_is_stored():
    kept = log({})
    kept.partition_entries([outcome(4, p0=40, p1=14), outcome(5, p0=50), outcome(6)])
    assert kept.commit_changes(6) == MetadataChanges({"partition.0:5": 50, "partition.1:4": 14})
    kept.committed(6)
    assert kept.partitions == {"partition.0": {5: 50}, "partition.1": {4: 14}}
    assert kept.commit_changes(6) == MetadataChanges()


def test_asking_what_a_commit_stores_changes_nothing_for_it_may_be_refused():
    kept = log()
    kept.partition_entries([outcome(4, p0=40)])
    assert kept.commit_changes(4) == kept.commit_changes(4)
    assert kept.last_cut_txid() == 4


def test_positions_of_void_attempts_are_forgotten_at_once():
    kept = log()
    kept.partition_entries([outcome(4, p0=40), outcome(5, p0=50)])
    assert kept.last_positions()["partition.0"] == 50
    kept.drop([att(5, 1), att(6, 1)])
    assert kept.last_positions()["partition.0"] == 40
    assert kept.last_cut_txid() == 4
    kept.drop([att(4, 2)])
    assert kept.last_positions()["partition.0"] == 40, "another attempt of the txid"
    kept.drop([att(4, 1)])
    assert kept.partitions == {"partition.0": {3: 30}, "partition.1": {2: 12}}
    assert kept.last_cut_txid() == 3


def test_an_attempt_without_positions_counts_as_cut():
    kept = log({})
    kept.partition_entries([outcome(4)])
    assert (kept.last_cut_txid(), kept.last_positions()) == (4, {})


@pytest.mark.parametrize("position", [(1, 2), {3: (4,)}, None], ids=repr)
def test_p14_what_is_acquired_is_what_was_committed(position):
    kept = log({"partition.0:3": position})
    assert kept.partitions == {"partition.0": {3: position}}
