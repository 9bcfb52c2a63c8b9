"""What is stored, and what may be forgotten once something is committed."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.machine.metadata_log import MetadataLog
from state.attempt import TransactionAttempt
from state.metadata import MetadataChanges
from tests.support.case_names import shown

STORED = {
    "coordinator:3": "c3",
    "coordinator:4": "c4",
    "partition.0:3": [0, 30],
    "partition.0:4": [30, 40],
    "partition.1:4": [0, 4],
}


def outcome(txid, **metadata):
    return AttemptResult(TransactionAttempt(txid, 1), metadata=metadata)


def test_what_was_acquired_is_told_by_scope():
    log = MetadataLog(STORED)
    assert log.coordinator == {3: "c3", 4: "c4"}
    assert log.partitions == {"partition.0": {3: [0, 30], 4: [30, 40]}, "partition.1": {4: [0, 4]}}


def test_new_entries_are_to_be_stored_once():
    log = MetadataLog(STORED)
    assert log.coordinator_entries({5: "c5", 6: None}) == {"coordinator:5": "c5", "coordinator:6": None}
    assert log.coordinator_entries({}) == {}
    assert log.coordinator == {3: "c3", 4: "c4", 5: "c5", 6: None}


def test_where_partitions_begin_is_known_and_to_be_stored_at_once():
    log = MetadataLog({})
    first = {"partition.0": "end", "partition.1": "end"}
    assert log.take_first_positions(first) == {"partition.0:0": "end", "partition.1:0": "end"}
    assert log.last_positions() == first
    assert log.last_cut_txid == 0
    assert log.coordinator_entries({1: 2}) == {"coordinator:1": 2}
    log.note_positions([outcome(1, **{"partition.0": "later"})])
    assert log.commit_changes(1, {}, {}).forgets == ("partition.0:0",)


def test_where_partitions_of_an_opaque_spout_begin_is_kept_until_they_are_read():
    log = MetadataLog({"partition.0:0": "end", "partition.1:0": "end"}, is_opaque=True)
    changes = log.commit_changes(1, {1: {"partition.0": "later"}}, {})
    assert changes == MetadataChanges({"partition.0:1": "later"}, ("partition.0:0",))


def test_what_emitters_cut_is_stored_by_partition_and_txid():
    log = MetadataLog({})
    entries = log.note_positions([outcome(5, **{"partition.0": [40, 50], "partition.1": None}), outcome(6)])
    assert entries == {"partition.0:5": [40, 50], "partition.1:5": None}
    assert log.partitions == {"partition.0": {5: [40, 50]}, "partition.1": {5: None}}


def test_a_commit_forgets_what_is_strictly_below_it():
    log = MetadataLog(STORED)
    assert log.commit_changes(3, {}, {}) == MetadataChanges()
    assert log.commit_changes(4, {}, {}) == MetadataChanges(forgets=("coordinator:3", "partition.0:3"))
    log.committed(4, log.commit_changes(4, {}, {}))
    assert log.coordinator == {4: "c4"}
    assert log.partitions == {"partition.0": {4: [30, 40]}, "partition.1": {4: [0, 4]}}
    assert log.commit_changes(4, {}, {}) == MetadataChanges()
    assert log.coordinator_entries({}) == {}


def test_a_partition_that_is_away_for_a_while_keeps_its_last_position():
    """Otherwise it would start at the beginning when it returns, and everything would be counted twice."""
    log = MetadataLog({"coordinator:4": 2, "partition.0:4": [30, 40], "partition.1:4": [0, 4]})
    log.coordinator_entries({5: 1, 6: 1})
    log.note_positions([outcome(5, **{"partition.0": [40, 50]}), outcome(6, **{"partition.0": [50, 60]})])
    assert log.commit_changes(6, {}, {}).forgets == ("coordinator:4", "coordinator:5", "partition.0:4", "partition.0:5")
    log.committed(6, log.commit_changes(6, {}, {}))
    assert log.partitions == {"partition.0": {6: [50, 60]}, "partition.1": {4: [0, 4]}}


def test_an_opaque_spout_knows_nothing_of_what_was_stored_ahead_of_the_last_commit():
    """A partitioned spout, which this one is adopted over, stores before it commits: nothing of that was published."""
    log = MetadataLog(STORED | {"partition.1:5": [4, 8]}, is_opaque=True, committed_txid=3)
    assert (log.coordinator, log.partitions) == ({}, {"partition.0": {3: [0, 30]}})
    cut = {4: {"partition.1": [0, 2]}}
    changes = log.commit_changes(4, cut, {})
    assert changes.puts == {"partition.1:4": [0, 2]}
    assert changes.forgets == ("coordinator:3", "coordinator:4", "partition.0:4", "partition.1:5")
    log.committed(4, log.commit_changes(4, cut, {}))
    assert log.partitions == {"partition.0": {3: [0, 30]}, "partition.1": {4: [0, 2]}}
    assert log.commit_changes(5, {}, {}).forgets == ()


# What an opaque spout has cut and not committed

OPAQUE = {"partition.0:3": 30, "partition.1:2": 12}


def opaque(stored=OPAQUE):
    return MetadataLog(stored, is_opaque=True, committed_txid=3)


def test_what_emitters_cut_is_stored_by_the_commit_of_its_transaction_and_no_earlier():
    log = opaque()
    positions = {4: {"partition.0": 40}, 5: {"partition.0": 50, "partition.1": 15}}
    assert log.commit_changes(4, positions, {}) == MetadataChanges({"partition.0:4": 40}, ("partition.0:3",))
    log.committed(4, log.commit_changes(4, positions, {}))
    assert log.partitions == {"partition.0": {4: 40}, "partition.1": {2: 12}}
    del positions[4]
    assert log.commit_changes(5, positions, {}) == MetadataChanges(
        {"partition.0:5": 50, "partition.1:5": 15}, ("partition.0:4", "partition.1:2")
    )
    log.committed(5, log.commit_changes(5, positions, {}))
    assert log.partitions == {"partition.0": {5: 50}, "partition.1": {5: 15}}


def test_of_a_group_only_the_last_position_of_each_partition_is_stored():
    log = opaque({})
    positions = {4: {"partition.0": 40, "partition.1": 14}, 5: {"partition.0": 50}, 6: {}}
    assert log.commit_changes(6, positions, {}) == MetadataChanges({"partition.0:5": 50, "partition.1:4": 14})
    log.committed(6, log.commit_changes(6, positions, {}))
    assert log.partitions == {"partition.0": {5: 50}, "partition.1": {4: 14}}
    assert log.commit_changes(6, {}, {}) == MetadataChanges()


@pytest.mark.case(id="P-14")
@pytest.mark.parametrize("position", [(1, 2), {3: (4,)}, None], ids=shown)
def test_what_is_acquired_is_what_was_committed(position):
    assert opaque({"partition.0:3": position}).partitions == {"partition.0": {3: position}}


# Notes


def letters(*values):
    """Txid -> the last letter under its first one, from txid 1 on."""
    return {txid: {value[0]: value[-1]} for txid, value in enumerate(values, 1)}


def test_notes_are_stored_by_the_commit_and_outlive_the_metadata():
    log = MetadataLog({})
    cut = letters("a1", "b1", "a2")
    log.coordinator_entries({1: "a1", 2: "b1", 3: "a2"})
    assert log.notes(cut) == {"a": "2", "b": "1"}, "of what was cut, committed or not"
    changes = log.commit_changes(2, {}, cut)
    assert changes == MetadataChanges({"note.a:2": "1", "note.b:2": "1"}, ("coordinator:1",))
    log.committed(2, log.commit_changes(2, {}, cut))
    cut = {3: cut[3]}
    assert log.commit_changes(3, {}, cut) == MetadataChanges({"note.a:3": "2"}, ("coordinator:2", "note.a:2"))
    log.committed(3, log.commit_changes(3, {}, cut))
    assert log.notes({}) == {"a": "2", "b": "1"}
    assert log.commit_changes(3, {}, {}) == MetadataChanges()


def test_notes_come_back_with_those_of_what_was_cut_and_not_committed():
    stored = {"coordinator:3": "a3", "coordinator:4": "c4", "note.a:3": "3", "note.b:1:1": "1"}
    log = MetadataLog(stored, committed_txid=3)
    cut = {4: {"c": "4"}}
    assert log.notes(cut) == {"a": "3", "b:1": "1", "c": "4"}
    assert log.partitions == {}
    assert log.commit_changes(4, {}, cut) == MetadataChanges({"note.c:4": "4"}, ("coordinator:3",))


def test_notes_are_replaced_or_forgotten_with_the_next_commit():
    log = MetadataLog({"coordinator:3": "a3", "note.a:3": "3", "note.b:1": "1"}, committed_txid=3)
    log.replace_notes({"a": "new", "b": None, "d": "4"})
    log.coordinator_entries({4: "d5"})
    cut = {4: {"d": "5"}}
    assert log.notes(cut) == {"a": "new", "b": None, "d": "5"}
    changes = log.commit_changes(4, {}, cut)
    assert changes.puts == {"note.a:4": "new", "note.d:4": "5"}
    assert changes.forgets == ("coordinator:3", "note.a:3", "note.b:1")
    log.committed(4, log.commit_changes(4, {}, cut))
    assert log.notes({}) == {"a": "new", "d": "5"}
    assert log.commit_changes(4, {}, {}) == MetadataChanges(), "replaced once"


def test_notes_are_replaced_with_the_last_of_what_was_cut_before_and_not_sooner():
    stored = {"coordinator:3": "a3", "coordinator:4": "a4", "coordinator:5": "a5", "note.a:3": "3"}
    log = MetadataLog(stored, committed_txid=3)
    log.replace_notes({"a": None, "b": "a, renamed"})
    log.coordinator_entries({6: "a6"})
    cut = {4: {"a": "4"}, 5: {"a": "5"}, 6: {"c": "6"}}
    assert log.notes(cut) == {"a": None, "b": "a, renamed", "c": "6"}
    assert log.commit_changes(4, {}, cut).puts == {"note.a:4": "4"}
    log.committed(4, log.commit_changes(4, {}, cut))
    del cut[4]
    changes = log.commit_changes(6, {}, cut)
    assert (changes.puts, changes.forgets[-1]) == ({"note.b:6": "a, renamed", "note.c:6": "6"}, "note.a:4")
    log.committed(6, changes)
    assert log.notes({}) == {"b": "a, renamed", "c": "6"}


def test_an_opaque_spout_leaves_notes_of_another_kind_alone():
    log = MetadataLog({"note.a:3": "3", "coordinator:4": "a4"}, is_opaque=True, committed_txid=3)
    assert (log.notes({}), log.partitions) == ({"a": "3"}, {})
