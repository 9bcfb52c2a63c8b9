"""Whole runs over random topologies, with faults of frames on the way: the committed state is exact.

Plan, stages, frames, counting, ack tree, group commit and driver loop are the real ones; only Spark is
replaced by lists and Redis by a dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.completeness.tracking import Tracking
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import FrameKind
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import FailedException, HashState
from tests.support.runs.whole_runs import (
    Count0,
    Count1,
    Count2,
    Counting,
    CrashingStore,
    OneFault,
    RandomFaults,
    bounds,
    crash_points,
    in_both_modes,
    once_each,
    run,
    run_until_it_ends,
)
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import Lines, Pass

COUNTS = [Count0, Count1, Count2]
GROUPINGS = ["shuffle", "fields", "all", "global"]


@dataclass
class Shape:
    """A topology and how many copies of each tuple reach each of its states."""

    topology: Topology
    copies: dict[str, int]
    tuples: int
    transactions: int

    def expected(self) -> dict[str, dict[str, int]]:
        return {
            name: {
                **{f"lines of {txid}": copies * self.tuples for txid in range(1, self.transactions + 1)},
                "all": copies * self.tuples * self.transactions,
            }
            for name, copies in self.copies.items()
            if self.tuples
        }


@st.composite
def shapes(draw):
    transactions, tuples = draw(st.integers(1, 8)), draw(st.integers(0, 5))
    spout = Lines(transactions, tuples)
    builder = TransactionalTopologyBuilder("test", "lines", spout, parallelism=draw(st.integers(1, 2)))
    builder.set_acker_count(draw(st.integers(1, 2)))
    copies, states = {"lines": 1}, {}
    left = list(COUNTS)
    for number in range(draw(st.integers(1, 5))):
        is_committer = bool(left) and draw(st.booleans())
        bolt: Any = left.pop(0)() if is_committer else Pass()
        heard = draw(st.lists(st.sampled_from(sorted(copies)), min_size=1, max_size=2, unique=True))
        tasks = draw(st.integers(1, 3))
        # what a committer that reads is sent must not depend on which task a tuple goes to
        reads = getattr(bolt, "is_reading", False)
        declarer = builder.set_bolt(f"b{number}", bolt, parallelism=1 if reads else tasks)
        copies[f"b{number}"] = 0
        for source in heard:
            grouping = draw(st.sampled_from(GROUPINGS))
            if grouping == "fields":
                declarer.fields_grouping(source, ["line"])
            else:
                getattr(declarer, f"{grouping}_grouping")(source)
            times = tasks if grouping == "all" and not reads else 1
            copies[f"b{number}"] += copies[source] * times
        if is_committer:
            states[bolt.counts.name] = copies[f"b{number}"]
    return Shape(builder.build(), states, tuples, transactions)


@settings(max_examples=60)
@given(shapes(), bounds, st.integers(0, 2**32))
def test_every_tuple_is_counted_once_whatever_the_topology(shape, options, seed):
    store = MemoryStore()
    coordinator = run(shape.topology, store, seed=seed, **options)
    assert store.states == shape.expected()
    assert coordinator.statistics.failed_attempts == 0
    assert coordinator.statistics.tuples == shape.tuples * shape.transactions


@settings(max_examples=120)
@given(shapes(), bounds, st.integers(0, 2**32), st.integers(1, 6))
def test_faults_of_frames_change_nothing_that_is_committed(shape, options, seed, budget):
    store, faults = MemoryStore(), RandomFaults(Random(seed), budget)
    coordinator = run(shape.topology, store, seed=seed, fault=faults, **options)
    assert store.states == shape.expected()
    assert coordinator.statistics.committed == shape.transactions


@settings(max_examples=60)
@given(shapes(), bounds, crash_points)
def test_a_driver_killed_before_or_after_any_call_goes_on_exactly(shape, options, crashes):
    store = CrashingStore(crashes)
    run_until_it_ends(shape.topology, store, **options)
    assert store.states == shape.expected()
    assert [txid for group in store.committed for txid in group] == list(range(1, shape.transactions + 1))


class Swallowing(Counting):
    """Makes nothing of an exception when it reads."""

    counts = HashState("counts0")

    def finish_batch(self):
        for line, number in Counter(line for line, _ in self.rows).items():
            try:
                before = self.counts.get(line) or 0
            except Exception:  # noqa: BLE001 - what users do
                before = 1_000
            self.counts.put(line, before + number)
            self.counts.increment("all", number)


@in_both_modes
@pytest.mark.parametrize("commit_group_max", [1, 3, 64])
def test_a_committer_that_swallows_exceptions_cannot_commit_what_it_has_not_read(commit_group_max, early_commit):
    builder = TransactionalTopologyBuilder("test", "lines", Lines(6, 4), parallelism=2)
    builder.set_bolt("count", Swallowing(), 2).fields_grouping("lines", ["line"])
    shape, store = Shape(builder.build(), {"counts0": 1}, 4, 6), MemoryStore()
    run(shape.topology, store, commit_group_max=commit_group_max, early_commit=early_commit)
    assert store.states == shape.expected()


HARMFUL = [("drop", FrameKind.REGULAR), ("double", FrameKind.REGULAR), ("alter", FrameKind.REGULAR)]


def word_count(transactions=4):
    builder = TransactionalTopologyBuilder("test", "lines", Lines(transactions, 4), parallelism=2)
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("lines")
    builder.set_bolt("count", Count0(), 2).fields_grouping("pass", ["line"])
    return Shape(builder.build(), {"counts0": 1}, 4, transactions)


WITHOUT = {
    "counting": mock.patch.object(Tracking, "_is_matched", return_value=True),
    "digest": mock.patch.object(EdgeDigest, "edge_id", return_value=0),  # edges say nothing
}


@in_both_modes
@pytest.mark.parametrize("component_id", ["pass", "count"])
@pytest.mark.parametrize(("kind", "frame_kind"), HARMFUL, ids=lambda part: str(getattr(part, "name", part)))
def test_exactly_the_attempt_of_the_faulty_frame_fails(component_id, kind, frame_kind, early_commit):
    shape, store, fault = word_count(), MemoryStore(), OneFault(component_id, kind, frame_kind)
    coordinator = run(
        shape.topology, store, fault=fault, is_chained=False, max_spout_pending=8, early_commit=early_commit
    )
    assert fault.is_done
    assert store.states == shape.expected()
    assert coordinator.statistics.failed_attempts == 3  # txid 2, and with it 3 and 4
    assert store.committed[0] == [1]


@in_both_modes
@pytest.mark.parametrize("component_id", ["pass", "count"])
@pytest.mark.parametrize(
    ("without", "kind", "is_exact"),
    [
        *((("counting",), kind, True) for kind in ("drop", "double", "alter")),
        *((("digest",), kind, kind != "alter") for kind in ("drop", "double", "alter")),
        *((("counting", "digest"), kind, False) for kind in ("drop", "double", "alter")),
    ],
    ids=str,
)
def test_digest_or_counting_keeps_the_result_exact_and_without_both_a_wrong_one_would_be_committed(
    component_id, without, kind, is_exact, early_commit
):
    """Counting alone notices no altered tuple."""
    shape, store, fault = word_count(), MemoryStore(), OneFault(component_id, kind, FrameKind.REGULAR)
    with ExitStack() as guards:
        for guard in without:
            guards.enter_context(WITHOUT[guard])
        run(shape.topology, store, fault=fault, is_chained=False, max_spout_pending=8, early_commit=early_commit)
    assert fault.is_done
    assert (store.states == shape.expected()) is is_exact


class Header(Pass):
    """Fails once, before it has sent anything."""

    failures: ClassVar[list[FailedException]] = []

    def execute(self, tup):
        if self.attempt.txid == 2 and Header.failures:
            raise Header.failures.pop()
        super().execute(tup)


class Strict(Pass):
    """Raises if it is given a row before the header."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.header: str | None = None

    def execute(self, tup):
        if tup.source_component == "header":
            self.header = tup["line"]
        elif self.header is None:
            raise KeyError("row without a header")
        super().execute(tup)


def test_what_a_bolt_raises_behind_a_failed_one_does_not_halt_the_run():
    Header.failures[:] = [FailedException("later")]
    builder = TransactionalTopologyBuilder("test", "lines", Lines(4, 4))
    builder.set_bolt("header", Header()).shuffle_grouping("lines")
    builder.set_bolt("rows", Pass()).shuffle_grouping("lines")
    builder.set_bolt("strict", Strict()).shuffle_grouping("header").shuffle_grouping("rows")
    builder.set_bolt("count", Count0()).shuffle_grouping("strict")
    shape, store = Shape(builder.build(), {"counts0": 2}, 4, 4), MemoryStore()
    coordinator = run(shape.topology, store, max_spout_pending=8)
    assert store.states == shape.expected()
    assert coordinator.statistics.failed_attempts == 3


# A partitioned spout: what emitters cut is stored by the driver and read again exactly


class Partitions(IPartitionedTransactionalSpout):
    """Partition p holds 10·p, 10·p + 1, …; a batch is two of them while there are any."""

    output_fields = ("line", "number")

    def __init__(self, partitions: Mapping[int, int], transactions: int) -> None:
        self.partitions, self.transactions = dict(partitions), transactions

    def get_coordinator(self, conf, context):
        return PartitionsCoordinator(self.partitions, self.transactions)

    def get_emitter(self, conf, context):
        return PartitionsEmitter()


class PartitionsCoordinator(PartitionedCoordinator):
    """The number of partitions changes with the transactions: {from txid: partitions}."""

    def __init__(self, partitions: Mapping[int, int], transactions: int) -> None:
        self.partitions, self.transactions = partitions, transactions
        self.started = 0

    def number_of_partitions(self):
        self.started += 1
        return [number for txid, number in sorted(self.partitions.items()) if txid <= self.started][-1]

    def is_exhausted(self):
        return self.run_so_far.last_txid >= self.transactions


class PartitionsEmitter(PartitionedEmitter):
    def emit_partition_batch_new(self, attempt, collector, partition, last):
        first = last[1] if last else 0
        metadata = [first, min(first + 2, 7)]
        self.emit_partition_batch(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        for number in range(*metadata):
            collector.emit([f"{partition}/{number}", number])


def partitioned(partitions, transactions, tasks=2):
    spout = Partitions(partitions, transactions)
    builder = TransactionalTopologyBuilder("test", "lines", spout, parallelism=tasks)
    builder.set_bolt("count", Count0(), 2).fields_grouping("lines", ["line"])
    return builder.build()


@settings(max_examples=40)
@given(st.integers(1, 3), bounds, st.integers(0, 2**32), st.integers(0, 6))
def test_every_value_of_every_partition_is_counted_once(tasks, options, seed, budget):
    store, faults = MemoryStore(), RandomFaults(Random(seed), budget)
    run(partitioned({1: 3}, 6, tasks), store, seed=seed, fault=faults, **options)
    assert store.states == once_each(0, 1, 2)
    assert sorted(store.metadata) == ["coordinator:6", "partition.0:6", "partition.1:6", "partition.2:6"]


@settings(max_examples=40)
@given(st.integers(1, 3), bounds, st.integers(0, 2**32), crash_points)
def test_every_value_of_every_partition_is_counted_once_after_any_crash(tasks, options, seed, crashes):
    store, faults = CrashingStore(crashes), RandomFaults(Random(seed), 2)
    run_until_it_ends(partitioned({1: 3}, 6, tasks), store, seed=seed, fault=faults, **options)
    assert store.states == once_each(0, 1, 2)


def test_a_partition_that_comes_later_begins_at_its_beginning():
    store = MemoryStore()
    run(partitioned({1: 1, 3: 2}, 8), store)
    assert store.states == once_each(0, 1)


def test_a_partition_that_is_away_for_a_while_goes_on_where_it_was():
    store = MemoryStore()
    run(partitioned({1: 2, 3: 1, 6: 2}, 10), store, max_spout_pending=1)
    assert store.states == once_each(0, 1)


def test_a_second_run_goes_on_from_the_stored_positions_and_ends_with_the_input():
    store = MemoryStore()
    run(partitioned({1: 2}, 2), store)
    assert store.committed_txid == 2
    run(partitioned({1: 2}, 4), store)
    assert store.committed_txid == 4
    assert store.states == once_each(0, 1)
    run(partitioned({1: 2}, 4), store)
    assert store.committed_txid == 4
