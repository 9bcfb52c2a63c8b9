"""Replays in the run machine: a wave of their own, positions of their own, and nothing of them in the topology's."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.batch import Batch
from coordinator.spouts.partition_cut import UNCHAINED
from coordinator.transactional.engine import WaveProcessed
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.run_events import (
    BatchCut,
    NothingToCut,
    Publish,
    Refused,
    StartWave,
    StoreMetadata,
)
from state.codec import pack
from state.commits.quarantine import BatchInput
from state.errors import NotRepublishableError, ReplayLimitError, StateRefusedError, UserCodeError
from state.metadata import MetadataChanges
from tests.support.machine.by_hand import Driven, halted

WHOLE = Republication(2, BatchInput(2, "two"))
PARTS = Republication(2, BatchInput(2, 2, {"partition.0": 20, "partition.1": None}))
MOVING = Republication(2, BatchInput(2, 2, {"partition.0": 20, "partition.1": 9}, {"partition.0": 10}))


class Replaying(Driven):
    """A run that replays, after everything up to txid 5 is committed."""

    def __init__(self, *replays, **given):
        self.waiting = list(replays)
        super().__init__(self.cut, committed_txid=5, **({"max_attempts": 2} | given))

    def cut(self, cut):
        if not self.waiting:
            return NothingToCut(cut.txid, 0.0)
        republished = self.waiting.pop(0)
        return BatchCut(cut.txid, republished.batch.metadata, 0.0, republished=republished)

    def started(self):
        (start,) = (decision for decision in self.turn() if isinstance(decision, StartWave))
        return start

    def ends(self, start, failure=None, **more):
        outcomes = (AttemptResult(batch.attempt, failure, **more) for batch in start.batches)
        return self.handle(WaveProcessed(start.wave_id, tuple(outcomes)))

    def published_one(self):
        self.turn()
        (publish,) = (decision for decision in self.executed() if isinstance(decision, Publish))
        self.published()
        return publish


STORED = {"coordinator:5": "five"}
PARTITIONED = {"has_partitions": True, "spout_id": "lines"}
PART_STORED = {"coordinator:5": 2, "partition.0:5": 50, "partition.1:5": 51}
OPAQUE = {**PARTITIONED, "is_opaque": True}
OPAQUE_STORED = {"partition.0:5": 50, "partition.1:3": 30}


def test_each_travels_in_a_wave_of_its_own_under_the_number_it_was_first_read_with():
    run = Replaying(WHOLE, Republication(4, BatchInput(3, "four")), stored=STORED)
    first = run.started()
    assert first.batches == (Batch(first.batches[0].attempt, pack("two"), 2),)
    assert first.batches[0].attempt.txid == 6
    run.ends(first)
    second = run.started()
    assert [(batch.attempt.txid, batch.number) for batch in second.batches] == [(7, 3)]


def test_nothing_is_stored_before_the_commit_that_takes_the_record():
    run = Replaying(WHOLE, stored=STORED)
    decisions = run.turn()
    assert not [decision for decision in decisions if isinstance(decision, StoreMetadata)]
    run.ends(next(decision for decision in decisions if isinstance(decision, StartWave)))
    publish = run.published_one()
    assert publish.republished == WHOLE
    assert publish.metadata == MetadataChanges({"coordinator:6": "five", "replayed:6": [1, 2]}, ("coordinator:5",))


def test_the_number_of_replays_is_stored_once_and_grows():
    run = Replaying(WHOLE, stored={**STORED, "replayed:4": [3, 1]})
    run.ends(run.started())
    assert run.published_one().metadata.puts["replayed:6"] == [4, 2]
    log = MetadataLog({"coordinator:6": "five", "replayed:6": [4, 2]}, committed_txid=6)
    assert [log.number_of(txid) for txid in (5, 6, 7)] == [2, 2, 3]
    assert [log.batch_number(txid) for txid in (5, 6, 7)] == [2, 2, 3]
    assert log.partitions == {}


def test_entries_of_replays_that_nobody_is_told_of_any_more_are_forgotten():
    stored = {"coordinator:2000": "last", "replayed:3": [1, 2], "replayed:900": [2, 3], "replayed:1990": [3, 9]}
    log = MetadataLog(stored, committed_txid=2000)
    numbers = {2: 2, 3: 2, 4: 3, 899: 898, 900: 898, 901: 899, 1990: 1987, 1991: 1988}
    assert {txid: log.number_of(txid) for txid in numbers} == numbers
    assert log.batch_number(900) == 3
    changes = log.commit_changes(2001, {}, {}, republished_number=11)
    assert changes.puts == {"replayed:2001": [4, 11]}
    assert {name for name in changes.forgets if name.startswith("replayed")} == {"replayed:3", "replayed:900"}
    log.committed(2001, log.commit_changes(2001, {}, {}, republished_number=11))
    assert [log.number_of(txid) for txid in (1989, 1990, 2001, 2002)] == [1987, 1987, 1997, 1998]


class TestPartitioned:
    def test_emitters_find_the_batch_stored(self):
        run = Replaying(PARTS, stored=PART_STORED, plan=PARTITIONED)
        start = run.started()
        assert start.stored == {"partition.0": {6: 20}, "partition.1": {6: None}}

    def test_the_positions_of_the_topology_are_carried_over(self):
        run = Replaying(PARTS, stored=PART_STORED, plan=PARTITIONED)
        run.ends(run.started())
        publish = run.published_one()
        carried = {"coordinator:6": 2, "partition.0:6": 50, "partition.1:6": 51, "replayed:6": [1, 2]}
        assert publish.metadata.puts == carried
        assert set(publish.metadata.forgets) == set(PART_STORED)
        assert run.machine.positions.last_positions() == {"partition.0": 50, "partition.1": 51}

    def test_an_emitter_that_cuts_something_new_cannot_replay(self):
        run = Replaying(PARTS, stored=PART_STORED, plan=PARTITIONED)
        run.ends(run.started(), metadata={"partition.1": 52})
        assert halted(run.turn(), NotRepublishableError).txid == 2

    def test_a_digest_that_the_engine_adds_is_no_cut(self):
        run = Replaying(WHOLE, stored=STORED)
        run.ends(run.started(), metadata={"partition.0": [3, 9]}, began_from={"partition.0": UNCHAINED})
        assert "partition.0:6" not in run.published_one().metadata.puts


class TestOpaque:
    def test_emitters_find_what_lay_below_the_batch(self):
        run = Replaying(MOVING, stored=OPAQUE_STORED, plan=OPAQUE)
        assert run.started().stored == {"partition.0": {5: 10}}

    def test_emitters_read_no_partition_that_was_not_part_of_the_batch(self):
        """One that nothing was told of has been read by a later transaction; found by simulation."""
        run = Replaying(MOVING, stored=OPAQUE_STORED, plan=OPAQUE)
        assert run.started().batches[0].scopes == {"partition.0", "partition.1"}

    def test_the_same_batch_leaves_the_positions_as_they_are(self):
        run = Replaying(MOVING, stored=OPAQUE_STORED, plan=OPAQUE)
        run.ends(run.started(), metadata={"partition.0": 20, "partition.1": 9})
        run.published_one()
        assert run.machine.positions.last_positions() == {"partition.0": 50, "partition.1": 30}

    @pytest.mark.parametrize("found", [{"partition.0": 21, "partition.1": 9}, {"partition.0": 20}, {"partition.2": 1}])
    def test_another_batch_is_refused(self, found):
        run = Replaying(MOVING, stored=OPAQUE_STORED, plan=OPAQUE)
        run.ends(run.started(), metadata=found)
        assert "cannot be republished: partition." in str(halted(run.turn(), NotRepublishableError))

    def test_an_attempt_that_failed_is_made_again_without_asking_the_spout(self):
        run = Replaying(MOVING, stored=OPAQUE_STORED, plan=OPAQUE)
        run.ends(run.started(), Failure(FailureKind.FAILED, "parse", 0, "later"))
        assert run.started().stored == {"partition.0": {5: 10}}


class TestFailures:
    @pytest.mark.parametrize("on_poison", ["halt", "quarantine"])
    def test_a_batch_that_is_still_poison_halts_and_is_not_set_aside_again(self, on_poison):
        run = Replaying(WHOLE, stored=STORED, on_poison=on_poison)
        run.ends(run.started(), Failure(FailureKind.USER, "parse", 0, "Traceback\nValueError"))
        halted(run.turn(), UserCodeError)

    @pytest.mark.parametrize("on_poison", ["halt", "quarantine"])
    def test_one_that_keeps_failing_halts_after_its_attempts(self, on_poison):
        run = Replaying(WHOLE, stored=STORED, on_poison=on_poison)
        for _ in range(2):
            run.ends(run.started(), Failure(FailureKind.FAILED, "parse", 0, "later"))
        halted(run.turn(), ReplayLimitError)

    def test_data_that_is_gone_has_an_error_of_its_own(self):
        run = Replaying(WHOLE, stored=STORED)
        run.ends(run.started(), Failure(FailureKind.SOURCE, "lines", 0, "offsets 3 to 9 were deleted"))
        error = halted(run.turn(), NotRepublishableError)
        assert "txid 2 cannot be republished: offsets 3 to 9 were deleted" in str(error)

    def test_a_record_that_was_dropped_halts_the_run(self):
        run = Replaying(WHOLE, stored=STORED)
        run.ends(run.started())
        run.turn()
        run.executed()
        run.handle(Refused(StateRefusedError("dropped while it was replayed")))
        halted(run.turn(), StateRefusedError)


def test_replays_wait_for_what_an_earlier_run_has_begun():
    run = Replaying(WHOLE, stored={**STORED, "coordinator:6": "six"}, max_spout_pending=8)
    start = run.started()
    assert [(batch.attempt.txid, batch.number) for batch in start.batches] == [(6, None)]
