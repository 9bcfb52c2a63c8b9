"""The run of an opaque spout: every attempt is cut again, and nothing is stored before the commit."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.spouts.partition_cut import link_to
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.transactional.engine import WaveProcessed
from coordinator.transactional.machine.run_events import Cut, FirstPositions, Publish, StoreMetadata
from coordinator.transactional.run_spout import RunSpout
from coordinator.transactional.spout_calls import SpoutCalls
from coordinator.watching.run_observer import AttemptRetried
from state.errors import FailedException
from state.metadata import MetadataChanges
from tests.support.machine.by_hand import LATER, ByHand, ScriptedSource, att, emitted, ready, wave
from tests.support.topologies.components import LinesCoordinator

STORED = {"partition.0:3": 30, "partition.1:2": 12}
BY_SCOPE = {"partition.0": {3: 30}, "partition.1": {2: 12}}


def machine(source=None, **given):
    """The last committed txid is 3."""
    return ByHand(source, committed_txid=3, stored=STORED, plan={"is_opaque": True}, **given)


def test_nothing_is_stored_before_the_emit():
    states = machine()
    assert states.turn() == [wave(1, (4, 1, "cut 1 of 4"), (5, 2, "cut 2 of 5"), (6, 3, "cut 3 of 6"), stored=BY_SCOPE)]
    assert states.source.asked[0] == Cut(4, None, is_new=True)


@pytest.mark.parametrize("is_opaque", [True, False], ids=["opaque", "partitioned"])
def test_where_partitions_begin_is_stored_before_anything_is_cut(is_opaque):
    source = ready()
    states = ByHand(source, plan={"is_opaque": is_opaque})
    assert states.handle(FirstPositions({"partition.0": 7})) == [StoreMetadata({"partition.0:0": 7})]
    assert states.machine.positions.last_positions() == {"partition.0": 7}
    assert source.asked == []


def test_every_attempt_is_cut_again_and_whether_the_spout_is_ready_is_asked_once_a_txid():
    source = ready()
    states = machine(source)
    states.turn()
    source.asked.clear()
    states.fail(att(5, 2))
    assert states.turn() == [wave(1, (5, 4, "cut 4 of 5"), (6, 5, "cut 5 of 6"), stored=BY_SCOPE)]
    assert source.asked == [Cut(5, "cut 1 of 4", is_new=False), Cut(6, "cut 4 of 5", is_new=False)]


def test_a_replay_that_cannot_be_cut_waits_and_leaves_no_gap():
    source = ready()
    states = machine(source)
    states.turn()
    states.fail(att(5, 2))
    source.answers = ["no", "yes", "yes"]
    assert states.turn() == []
    assert not states.machine.is_idle()
    assert emitted(states.turn()) == [5, 6]


def test_the_commit_stores_where_its_attempts_end_and_forgets_where_they_began():
    states = machine()
    states.turn()
    assert states.ack(att(4, 1), metadata={"partition.0": 40}) == []
    assert states.ack(att(5, 2), metadata={"partition.0": 50, "partition.1": 15}) == []
    states.turn()
    (publish,) = states.executed()
    assert isinstance(publish, Publish)
    puts = {"partition.0:5": 50, "partition.1:5": 15}
    assert publish.metadata == MetadataChanges(puts, ("partition.0:3", "partition.1:2"))


def test_a_partitioned_spout_stores_them_before_the_commit_phase_up_to_the_first_failure():
    states = ByHand()
    states.turn()
    assert states.ack(att(1, 1), metadata={"partition.0": [0, 4]}) == [StoreMetadata({"partition.0:1": [0, 4]})]
    cut = [AttemptResult(att(txid, txid), metadata={"partition.0": [4, txid]}) for txid in (1, 2, 3)]
    cut[1] = AttemptResult(att(2, 2), LATER, metadata={"partition.0": [4, 8]})
    states.waves.speaking_of = (att(2, 2), att(3, 3))
    assert states.handle(WaveProcessed(1, tuple(cut[1:]))) == []


def test_a_batch_that_does_not_begin_where_the_one_below_it_ended_is_cut_again_and_stores_nothing():
    states = ByHand()
    states.turn()
    states.ack(att(1, 1), metadata={"partition.0": [0, 4]})
    states.waves.speaking_of = (att(2, 2),)
    began_elsewhere = {"partition.0": link_to([0, 3])}
    outcome = AttemptResult(att(2, 2), metadata={"partition.0": [3, 8]}, began_from=began_elsewhere)
    assert states.handle(WaveProcessed(1, (outcome,))) == []
    (retried,) = (each for each in states.notified if isinstance(each, AttemptRetried))
    assert "partition.0 does not begin where the batch below it ended" in retried.reason


# Positions


def test_positions_of_processed_attempts_count_at_once():
    states = machine()
    states.turn()
    states.ack(att(4, 1), metadata={"partition.0": 40})
    states.ack(att(5, 2), metadata={"partition.0": 50, "partition.1": 15})
    positions = states.machine.positions
    assert positions.by_scope() == {"partition.0": {3: 30, 4: 40, 5: 50}, "partition.1": {2: 12, 5: 15}}
    assert positions.last_positions() == {"partition.0": 50, "partition.1": 15}
    assert positions.last_cut_txid() == 5
    states.turn()
    states.commit()
    assert positions.by_scope() == {"partition.0": {5: 50}, "partition.1": {5: 15}}
    assert (positions.last_cut_txid(), positions.last_positions()) == (5, {"partition.0": 50, "partition.1": 15})


def test_a_refused_commit_leaves_positions_as_they_were():
    states = machine()
    states.turn()
    for attempt, position in ((att(4, 1), 40), (att(5, 2), 50)):
        states.ack(attempt, metadata={"partition.0": position})
    states.turn()
    states.executed()
    before = states.machine.positions.by_scope()
    states.refused()
    assert states.machine.positions.by_scope() == before


def test_positions_of_void_attempts_are_forgotten_at_once():
    states = machine()
    states.turn()
    states.ack(att(4, 1), metadata={"partition.0": 40})
    states.ack(att(5, 2), metadata={"partition.0": 50})
    positions = states.machine.positions
    states.fail(att(5, 2))
    assert positions.last_positions()["partition.0"] == 40
    assert positions.last_cut_txid() == 4
    states.fail(att(4, 2))
    assert positions.last_positions()["partition.0"] == 40, "another attempt of the txid"
    states.fail(att(4, 1))
    assert positions.by_scope() == {"partition.0": {3: 30}, "partition.1": {2: 12}}
    assert positions.last_cut_txid() == 3


def test_an_attempt_without_positions_counts_as_cut():
    states = ByHand(committed_txid=3, plan={"is_opaque": True})
    states.turn()
    states.ack(att(4, 1))
    assert (states.machine.positions.last_cut_txid(), states.machine.positions.last_positions()) == (4, {})


def test_what_a_transactional_spout_has_processed_is_in_no_position():
    """It stores them itself, in time."""
    states = ByHand(ScriptedSource(["yes"]))
    states.turn()
    states.ack(att(1, 1))
    assert states.machine.positions.uncommitted() == {}
    assert states.machine.positions.last_cut_txid() == 1, "told, and with nothing in it"


def test_a_source_that_has_raised_is_not_asked_for_replays_either():
    """What is under way commits meanwhile, and each turn of the run would ask."""
    asked = []

    class Broken(LinesCoordinator):
        def initialize_transaction(self, txid, previous):
            asked.append(txid)
            raise ValueError("mine")

    calls = SpoutCalls("lines", tries=1, pause=lambda seconds: None)
    spout = RunSpout(Broken(3), calls, lambda: 0.0, RunSoFar(), has_partitions=True)
    for _ in range(3):
        with pytest.raises(FailedException, match="raised"):
            spout.initialize_transaction(2, None)
    assert asked == [2]
