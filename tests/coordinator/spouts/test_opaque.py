"""Opaque spouts, task by task and question by question."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.wiring import TaskWiring
from coordinator.spouts.batch_emitters import Batch
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedCoordinator,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partition_coordinators import OpaqueCountCoordinator
from coordinator.spouts.partition_cut import partition_of, partition_scope
from coordinator.transactional.emitter_task import EmitterTask
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from state.errors import FailedException
from tests.support.tasks.wirings import Sent, output


def att(txid, attempt_id=1):
    return TransactionAttempt(txid, attempt_id)


def batches(*pairs, attempt_id=1):
    return [Batch(att(txid, attempt_id), pack(count)) for txid, count in pairs]


class Calls:
    log: ClassVar[list[tuple[Any, ...]]] = []
    answers: ClassVar[dict[tuple[int, int], Any]] = {}


@pytest.fixture(autouse=True)
def fresh():
    Calls.log.clear()
    Calls.answers.clear()


class Log(IOpaquePartitionedTransactionalSpout):
    """Partition p holds p*100, p*100+1, …; a batch takes as many as its attempt id says."""

    output_fields = ("value",)

    def get_coordinator(self, conf, context):
        raise NotImplementedError

    def get_emitter(self, conf, context):
        return LogEmitter()


class LogEmitter(OpaquePartitionedEmitter):
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
    """What one task made of the batches, and the values it sent by txid."""
    sent = Sent()
    wiring = TaskWiring(
        topology_id="test",
        component_id="log",
        task_id=1 + task_index,
        task_index=task_index,
        task_count=task_count,
        tasks_of={"log": tuple(range(1, 1 + task_count)), "sink": (21,)},
        conf={},
        spec=pickle.dumps(Log()),
        streams=output((21,)),
        targets=(21,),
    )
    emitted = list(EmitterTask(wiring, sent.carrier, stored or {}).run(given))
    values: dict[int, list[Any]] = {}
    for frame in sent:
        content = unpack(frame.payload)
        if isinstance(content, list):
            values.setdefault(frame.attempt.txid, []).extend(row[0] for _, rows in content for row in rows)
    return emitted, values


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


@pytest.mark.parametrize(("task_index", "partitions"), [(0, [0, 2, 4]), (1, [1, 3])])
def test_task_k_of_n_owns_partitions_k_k_plus_n_and_so_on(task_index, partitions):
    emitted, _ = run(batches((1, 5)), task_index=task_index, task_count=2)
    assert list(emitted[0].metadata) == [partition_scope(partition) for partition in partitions]


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


def test_an_emitter_that_fails_an_attempt_fails_every_later_one_of_the_wave():
    Calls.answers[2, 0] = FailedException("later")
    emitted, _ = run(batches((1, 1), (2, 1), (3, 1)))
    kinds = [one.failure and one.failure.kind for one in emitted]
    assert kinds == [None, FailureKind.FAILED, FailureKind.INCOMPLETE]
    assert [one.metadata for one in emitted[1:]] == [{}, {}]


def test_a_scope_names_its_partition():
    assert partition_of(partition_scope(12)) == 12


# What the coordinator is asked


class Asked(OpaquePartitionedCoordinator):
    """Writes down what it is asked."""

    def __init__(self):
        self.log: list[Any] = []
        self.count: Any = 2
        self.is_ended = False

    def number_of_partitions(self):
        if isinstance(self.count, Exception):
            raise self.count
        return self.count

    def is_exhausted(self, positions, pending):
        self.log.append((positions, pending))
        return self.is_ended

    def progress(self, positions):
        return len(positions) / 4

    def activate(self):
        self.log.append("activate")

    def deactivate(self):
        self.log.append("deactivate")

    def close(self):
        self.log.append("close")


class Known:
    """Positions as the driver knows them."""

    def __init__(self, last_txid, **positions):
        self.last_txid, self.positions = last_txid, positions

    def last_positions(self):
        return self.positions

    def last_cut_number(self):
        return self.last_txid


def asked(last_txid=0, **positions):
    user = Asked()
    source, known = OpaqueCountCoordinator(user), Known(last_txid, **positions)
    source.follow(known)
    source.resume(last_txid, None)
    return user, source, known


def test_metadata_is_the_number_of_partitions_at_that_moment():
    user, source, _ = asked()
    assert source.initialize_transaction(1, None) == 2
    user.count = 5
    assert source.initialize_transaction(1, 2) == 5


def test_the_end_is_asked_with_positions_by_partition_and_how_many_transactions_are_not_in_them():
    user, source, known = asked(4, **{"partition.0": 40, "partition.12": 7})
    assert source.is_ready()
    source.initialize_transaction(5, None)
    source.initialize_transaction(6, None)
    assert source.is_ready()
    known.last_txid = 5
    user.is_ended = True
    assert not source.is_ready(), "an input that ends with what is under way is not gone on with"
    assert source.is_exhausted(None)
    positions = {0: 40, 12: 7}
    assert user.log == [(positions, 0), (positions, 2), (positions, 1), (positions, 1)]


def test_transactions_that_are_void_and_cannot_be_started_again_are_not_pending():
    """Else an input would be taken for ended although nobody reads the rest of it."""
    user, source, _ = asked(4)
    for txid in (5, 6, 7):
        source.initialize_transaction(txid, None)
    user.count = FailedException("the broker does not answer")
    with pytest.raises(FailedException):
        source.initialize_transaction(5, None)
    source.is_exhausted(None)
    assert user.log == [({}, 0)]


def test_everything_else_is_handed_on():
    user, source, _ = asked(1, **{"partition.0": 1})
    assert source.progress(None) == 0.25
    assert source.is_finite()
    source.activate()
    source.deactivate()
    source.close()
    assert user.log == ["activate", "deactivate", "close"]


class Endless(OpaquePartitionedCoordinator):
    def number_of_partitions(self):
        return 1


def test_by_default_an_opaque_input_has_no_end_and_is_always_ready():
    source = OpaqueCountCoordinator(Endless())
    source.follow(Known(0))
    assert (source.is_finite(), source.is_exhausted(None), source.is_ready()) == (False, False, True)
    assert source.progress(None) is None
    source.activate()
    source.deactivate()
    source.close()
