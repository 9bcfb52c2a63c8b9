"""Opaque spouts, task by task and question by question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinator import OpaquePartitionedEmitter, PartitionedCoordinator
from coordinator.spouts.batch import Batch
from coordinator.spouts.partition_cut import partition_of, partition_scope
from state.codec import pack
from tests.support.tasks.emitting import att, batches, run_emitter
from tests.support.topologies.spout_kinds import OpaqueSpout


class Calls:
    log: ClassVar[list[tuple[Any, ...]]] = []
    answers: ClassVar[dict[tuple[int, int], Any]] = {}


@pytest.fixture(autouse=True)
def fresh():
    Calls.log.clear()
    Calls.answers.clear()


class LogEmitter(OpaquePartitionedEmitter):
    """Partition p holds p*100, p*100+1, …; a batch takes as many as its attempt id says."""

    def emit_partition_batch(self, attempt, collector, partition, last):
        Calls.log.append((attempt.txid, partition, last))
        first = partition * 100 if last is None else last
        for value in range(first, first + attempt.attempt_id):
            collector.emit([value])
        answer = Calls.answers.get((attempt.txid, partition), first + attempt.attempt_id)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        Calls.log.append(("close",))


def run(given: list[Batch], stored: Mapping[str, Mapping[int, Any]] | None = None, task_index=0, task_count=1):
    return run_emitter(OpaqueSpout(PartitionedCoordinator, LogEmitter), given, stored, task_index, task_count)


def test_batches_of_a_wave_start_each_where_the_one_before_ended():
    emitted, values = run([*batches((1, 2)), *batches((2, 2), attempt_id=3)])
    assert values == {1: [0, 100], 2: [1, 2, 3, 101, 102, 103]}
    assert [e.metadata for e in emitted] == [
        {"partition.0": 1, "partition.1": 101},
        {"partition.0": 4, "partition.1": 104},
    ]
    assert Calls.log == [(1, 0, None), (1, 1, None), (2, 0, 1), (2, 1, 101), ("close",)]


def test_a_wave_starts_from_the_nearest_position_below_it():
    emitted, values = run(batches((6, 2)), {"partition.0": {3: 7, 5: 9}, "partition.1": {2: 102}})
    assert values == {6: [9, 102]}
    assert emitted[0].metadata == {"partition.0": 10, "partition.1": 103}


@pytest.mark.case(id="P-06")
def test_a_position_of_the_txid_itself_or_of_a_later_one_is_never_reused():
    """They are void; the driver drops them, and even if it had not, an emitter would not go by them."""
    emitted, values = run(batches((4, 1), (5, 1), attempt_id=2), {"partition.0": {3: 7, 4: 50, 5: 60, 6: 70}})
    assert values == {4: [7, 8], 5: [9, 10]}
    assert [e.metadata for e in emitted] == [{"partition.0": 9}, {"partition.0": 11}]


def test_a_partition_beyond_the_attempts_number_is_not_read_and_keeps_its_position():
    emitted, _ = run(batches((4, 2), (5, 1), (6, 2)), {"partition.1": {3: 107}})
    assert [len(e.metadata) for e in emitted] == [2, 1, 2]
    assert [call for call in Calls.log if call[1:2] == (1,)] == [(4, 1, 107), (6, 1, 108)]


@pytest.mark.case(id="P-06")
def test_none_leaves_the_position_as_it_was():
    Calls.answers.update({(1, 0): None, (3, 0): None})
    emitted, _ = run([Batch(att(1, 0), pack(1)), *batches((2, 1)), Batch(att(3, 0), pack(1)), *batches((4, 1))])
    assert [e.metadata for e in emitted] == [{}, {"partition.0": 1}, {}, {"partition.0": 2}]
    assert [e.failure for e in emitted] == [None] * 4
    assert Calls.log[:4] == [(1, 0, None), (2, 0, None), (3, 0, 1), (4, 0, 1)]


@pytest.mark.case(id="P-06")
def test_none_after_tuples_is_the_users_failure():
    """Otherwise the next batch would emit them again."""
    Calls.answers[1, 1] = None
    (emitted,) = run(batches((1, 2), attempt_id=3))[0]
    assert emitted.failure is not None
    assert emitted.failure.kind is FailureKind.USER
    assert "returned None for partition 1 although it emitted 3 tuples" in emitted.failure.text
    assert emitted.metadata == {}


@pytest.mark.case(id="P-14")
@pytest.mark.parametrize("position", [(1, "a"), {"offset": 2**70, 5: [1.5, None]}, b"\x00", 0, False])
def test_a_position_comes_back_as_it_was(position):
    Calls.answers[1, 0] = position
    run(batches((1, 1), (2, 1), attempt_id=0))
    (_, _, given) = Calls.log[1]
    assert given == position
    assert type(given) is type(position)


@pytest.mark.case(id="P-14")
@pytest.mark.parametrize("position", [object(), {1, 2}.__iter__], ids=["object", "method"])
def test_a_position_that_cannot_be_stored_is_the_users_failure_and_not_the_tasks(position):
    Calls.answers[1, 0] = position
    (emitted,) = run(batches((1, 1)))[0]
    assert emitted.failure is not None
    assert emitted.failure.kind is FailureKind.USER
    assert "cannot be sent or stored" in emitted.failure.text


def test_a_scope_names_its_partition():
    assert partition_of(partition_scope(12)) == 12
