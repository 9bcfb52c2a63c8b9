"""Whole runs of opaque spouts, every attempt of which is cut differently: what is committed is exact all the same."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.transport.frames import FrameKind
from coordinator.spouts.memory import OpaqueMemoryTransactionalSpout
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaquePartitionedEmitter
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import FailedException, FencedError, TransactionAttempt
from state.commits.commit import CommitReply, CommitStatus
from tests.support.runs.whole_runs import (
    Count0,
    CrashingStore,
    OneFault,
    RandomFaults,
    bounds,
    crash_points,
    once_each,
    run,
    run_until_it_ends,
)
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import Pass

VALUES = 7
"""Partition p holds p/0, p/1, … p/6."""


@dataclass(frozen=True)
class Cut:
    """One call of an emitter."""

    attempt: TransactionAttempt
    partition: int
    last: Any
    position: Any
    task_index: int
    committed_txid: int


class Told:
    """What emitters and coordinators of this process did; the store tells them how far it is."""

    cuts: ClassVar[list[Cut]] = []
    counts: ClassVar[list[int]] = []
    store: ClassVar[MemoryStore] = MemoryStore()


@pytest.fixture(autouse=True)
def fresh():
    begin(MemoryStore())


def begin(store):
    Told.cuts.clear()
    Told.counts.clear()
    Told.store = store
    return store


class Queue(IOpaquePartitionedTransactionalSpout):
    """How much of a partition an attempt takes, and how many partitions there are, depends on the seed.

    A position is a tuple, so that one that came back as a list would be noticed.
    """

    output_fields = ("line", "number")

    def __init__(self, partitions: int, seed: int = 0, counts: tuple[int, ...] = (), emitter: Any = None) -> None:
        self.partitions, self.seed, self.counts, self.emitter = partitions, seed, counts, emitter or QueueEmitter

    def get_coordinator(self, conf, context):
        return QueueCoordinator(self)

    def get_emitter(self, conf, context):
        return self.emitter(self.seed, context.task_index)


class QueueCoordinator(PartitionedCoordinator):
    """First the counts it was given, then all partitions or, now and then, only some."""

    def __init__(self, spout: Queue) -> None:
        self.partitions, self.counts = spout.partitions, list(spout.counts)
        self.random = Random(spout.seed)
        self.is_whole = bool(spout.counts)

    def number_of_partitions(self):
        drawn = self.random.choice([self.partitions, self.partitions, self.random.randint(0, self.partitions)])
        count = self.counts.pop(0) if self.counts else self.partitions if self.is_whole else drawn
        Told.counts.append(count)
        return count

    def is_exhausted(self):
        return all(self.run_so_far.positions.get(partition) == ("at", VALUES) for partition in range(self.partitions))


class QueueEmitter(OpaquePartitionedEmitter):
    def __init__(self, seed: int, task_index: int) -> None:
        self.seed, self.task_index = seed, task_index

    def emit_partition_batch(self, attempt, collector, partition, last):
        first = 0 if last is None else last[1]
        amount = Random(f"{self.seed} {attempt} {partition}").randint(0, 3)
        following = min(first + amount, VALUES)
        for number in range(first, following):
            collector.emit([f"{partition}/{number}", number])
        position = ("at", following) if following else None
        Told.cuts.append(Cut(attempt, partition, last, position, self.task_index, Told.store.committed_txid))
        return position


def topology(spout: Any, tasks: int = 2, bolt: Any = None):
    builder = TransactionalTopologyBuilder("test", "queue", spout, parallelism=tasks)
    builder.set_bolt("pass", bolt or Pass(), 2).shuffle_grouping("queue")
    builder.set_bolt("count", Count0(), 2).fields_grouping("pass", ["line"])
    return builder.build()


def cuts_of(txid: int) -> dict[TransactionAttempt, dict[int, Cut]]:
    found: dict[TransactionAttempt, dict[int, Cut]] = {}
    for cut in Told.cuts:
        if cut.attempt.txid == txid:
            found.setdefault(cut.attempt, {})[cut.partition] = cut
    return found


def assert_exact(store: MemoryStore, partitions: int) -> None:
    """Every value is counted once, every position stands at the end, and nothing else is kept."""
    assert store.states == once_each(*range(partitions), values=VALUES)
    positions = {field.partition(":")[0]: value for field, value in store.metadata.items()}
    assert positions == {f"partition.{partition}": ("at", VALUES) for partition in range(partitions)}
    assert len(store.metadata) == partitions
    assert [txid for group in store.committed for txid in group] == list(range(1, store.committed_txid + 1))


@settings(max_examples=80)
@given(st.integers(1, 3), st.integers(1, 4), bounds, st.integers(0, 2**32), st.integers(0, 6))
def test_every_value_is_counted_once_though_replays_are_cut_differently(tasks, partitions, options, seed, budget):
    store, faults = begin(MemoryStore()), RandomFaults(Random(seed), budget)
    run(topology(Queue(partitions, seed), tasks), store, seed=seed, fault=faults, **options)
    assert_exact(store, partitions)
    assert not any(call[0] == "metadata" for call in store.calls), "nothing is stored before the commit"


@settings(max_examples=80)
@given(st.integers(1, 3), st.integers(1, 4), bounds, st.integers(0, 2**32), crash_points)
@pytest.mark.nightly
def test_every_value_is_counted_once_after_any_crash(tasks, partitions, options, seed, crashes):
    store, faults = begin(CrashingStore(crashes)), RandomFaults(Random(seed), 2)
    run_until_it_ends(topology(Queue(partitions, seed), tasks), store, seed=seed, fault=faults, **options)
    assert_exact(store, partitions)


class FailsOnce(Pass):
    """Fails txid 2 once, when it has passed everything on."""

    left: ClassVar[list[int]] = []

    def finish_batch(self):
        super().finish_batch()
        if self.attempt.txid == 2 and FailsOnce.left:
            FailsOnce.left.pop()
            raise FailedException("once")


class CountFailsOnce(Count0):
    """Fails txid 2 once, in the commit phase."""

    left: ClassVar[list[int]] = []

    def finish_batch(self):
        if self.attempt.txid == 2 and CountFailsOnce.left:
            CountFailsOnce.left.pop()
            raise FailedException("once")
        super().finish_batch()


@pytest.mark.parametrize("phase", ["processing", "commit"])
def test_a_replay_is_cut_anew_from_the_position_below_and_its_own_positions_are_forgotten(phase):
    store = begin(MemoryStore())
    FailsOnce.left[:], CountFailsOnce.left[:] = ([0], []) if phase == "processing" else ([], [0])
    builder = TransactionalTopologyBuilder("test", "queue", Queue(2, seed=3, counts=(2,)))
    builder.set_bolt("pass", FailsOnce()).shuffle_grouping("queue")
    builder.set_bolt("count", CountFailsOnce()).fields_grouping("pass", ["line"])
    run(builder.build(), store, max_spout_pending=6)
    (first,) = cuts_of(1).values()
    failed, replayed = cuts_of(2).values()
    assert [failed[p].last for p in (0, 1)] == [replayed[p].last for p in (0, 1)] == [first[p].position for p in (0, 1)]
    assert [failed[p].position for p in (0, 1)] != [replayed[p].position for p in (0, 1)], "the seed cuts differently"
    assert len(cuts_of(3)) == 2, "later transactions were cut from void positions, so they are cut again too"
    assert_exact(store, 2)


@pytest.mark.case(id="P-06")
def test_the_number_of_partitions_is_one_for_all_tasks_of_an_attempt():
    store = begin(MemoryStore())
    coordinator = run(topology(Queue(3, counts=(3, 1, 2, 0, 3)), tasks=2), store, max_spout_pending=4)
    assert len(Told.counts) == coordinator.statistics.attempts, "asked once an attempt, on the driver"
    for txid, count in enumerate(Told.counts, start=1):
        tasks = {cut.partition: cut.task_index for cuts in cuts_of(txid).values() for cut in cuts.values()}
        assert tasks == {partition: partition % 2 for partition in range(count)}
    assert_exact(store, 3)


@pytest.mark.case(id="P-06")
def test_the_number_of_partitions_may_change_between_two_attempts_of_a_txid():
    store = begin(MemoryStore())
    FailsOnce.left[:] = [0]
    run(topology(Queue(3, counts=(3, 3, 3, 1)), bolt=FailsOnce()), store, max_spout_pending=2)
    failed, replayed = cuts_of(2).values()
    assert (sorted(failed), sorted(replayed)) == ([0, 1, 2], [0])
    *_, third = cuts_of(3).values()
    (first,) = cuts_of(1).values()
    assert third[1].last == first[1].position, "a partition that was away goes on where it was"
    assert third[0].last == replayed[0].position
    assert_exact(store, 3)


@pytest.mark.case(id="P-13")
def test_what_a_fenced_commit_carried_is_not_stored():
    store = begin(MemoryStore())
    store.replies = [None, CommitReply(CommitStatus.FENCED)]
    with pytest.raises(FencedError):
        run(topology(Queue(2, counts=(2,))), store, max_spout_pending=1)
    assert {field.partition(":")[2] for field in store.metadata} <= {"1"}
    assert store.committed_txid == 1


class SilentEmitter(QueueEmitter):
    """Returns None whenever it has nothing."""

    def emit_partition_batch(self, attempt, collector, partition, last):
        position = super().emit_partition_batch(attempt, collector, partition, last)
        return None if position == last else position


@pytest.mark.case(id="P-06")
@settings(max_examples=40)
@given(bounds, st.integers(0, 2**32), crash_points)
def test_none_of_an_emptied_partition_loses_no_position(options, seed, crashes):
    store = begin(CrashingStore(crashes))
    run_until_it_ends(topology(Queue(3, seed, emitter=SilentEmitter)), store, seed=seed, **options)
    assert_exact(store, 3)


@pytest.mark.parametrize("window", [1, 3, 64])
def test_an_input_that_counts_what_is_pending_has_no_empty_transactions(window):
    store = begin(MemoryStore())
    spout = OpaqueMemoryTransactionalSpout([[[str(n), n] for n in range(9)]], ["line", "number"], 2)
    run(topology(spout), store, max_spout_pending=window)
    assert store.committed_txid == 5
    run(topology(spout), store, max_spout_pending=window)
    assert store.committed_txid == 5, "what has ended is not begun again by another run"


@pytest.mark.case(id="P-15")
def test_positions_of_a_void_attempt_are_not_taken_for_those_of_its_txid():
    """Partition 1 was read by an attempt that failed in its commit phase, and is away when the txid is tried again."""
    store = begin(MemoryStore())
    FailsOnce.left[:], CountFailsOnce.left[:] = [], [0]
    builder = TransactionalTopologyBuilder("test", "queue", Queue(2, seed=3, counts=(2, 2, 2, 1)))
    builder.set_bolt("count", CountFailsOnce()).fields_grouping("queue", ["line"])
    run(builder.build(), store, max_spout_pending=2)
    (first,) = cuts_of(1).values()
    void, current = cuts_of(2).values()
    *_, third = cuts_of(3).values()
    assert (sorted(void), sorted(current)) == ([0, 1], [0])
    assert void[1].position != first[1].position
    assert (third[0].last, third[1].last) == (current[0].position, first[1].position)
    assert_exact(store, 2)


@pytest.mark.parametrize("kind", ["drop", "double", "alter"])
def test_positions_that_are_lost_or_altered_on_their_way_fail_the_attempt(kind):
    store = begin(MemoryStore())
    built = topology(Queue(2, counts=(2,)))

    fault = OneFault("pass", kind, FrameKind.ACK)
    fault.tasks = (7, 7)  # the acker
    coordinator = run(built, store, fault=fault, max_spout_pending=4)
    assert fault.is_done
    assert coordinator.statistics.failed_attempts > 0
    assert_exact(store, 2)
