"""What a run drives of a spout with partitions: the user's coordinator, adapted to `SpoutCoordinator` (driver)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from coordinator.spouts.answers import expect_count, expect_positions, expect_truth
from coordinator.spouts.opaque import OpaquePartitionedCoordinator
from coordinator.spouts.partition_cut import partition_of, partition_scope
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.run_so_far import CountsPartitions, FormerInput, InputChange, RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from state.values.own_copy import own_copy


class LastPositions(Protocol):
    """The position of every partition, as the driver knows it."""

    def last_positions(self) -> Mapping[str, Any]:
        """Returns scope -> its last position, committed or not."""

    def last_cut_number(self) -> int:
        """Returns the spout's number of the highest transaction whose positions are known, or that is committed."""


Counter = TypeVar("Counter", bound=CountsPartitions)


class CountCoordinator(SpoutCoordinator, Generic[Counter]):
    """The coordinator of a spout with partitions, whose metadata is their number.

    Subclasses know when the input ends.

    Args:
        counter: the user's coordinator.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._last_txid = 0
        self._positions: LastPositions | None = None

    def follow(self, positions: LastPositions) -> None:
        """Takes the positions to look up; called once, before anything else."""
        self._positions = positions

    def by_partition(self) -> dict[int, Any]:
        """See `PartitionPositions`."""
        assert self._positions is not None
        last = self._positions.last_positions()
        return {partition_of(scope): own_copy(position) for scope, position in last.items()}

    def pending(self) -> int:
        """See `PartitionPositions`."""
        assert self._positions is not None
        return max(0, self._last_txid - self._positions.last_cut_number())

    def first_positions(self) -> dict[str, Any]:
        """Returns scope -> where a partition begins that has no position."""
        known = self.by_partition()
        given = expect_positions(self._counter.first_positions(own_copy(known)))
        return {partition_scope(each): own_copy(at) for each, at in given.items() if each not in known}

    def initialize_transaction(self, txid: int, previous: Any) -> int:
        self._last_txid = txid - 1  # if the next line fails, all higher transactions are void
        count = expect_count(self._counter.number_of_partitions())
        self._last_txid = txid
        return count

    def is_ready(self) -> bool:
        # an input that has ended gets no new transaction, however often a run is started
        return not self.is_exhausted(None) and expect_truth("is_ready", self._counter.is_ready())

    def inform(self, run_so_far: RunSoFar) -> None:
        super().inform(run_so_far)
        self._counter.inform(run_so_far)

    def is_finite(self) -> bool:
        return self._counter.is_finite()

    def resume(self, last_txid: int, last: Any) -> None:
        self._last_txid = last_txid

    def compare(self, former: FormerInput) -> InputChange | None:
        return self._counter.compare(former)

    def activate(self) -> None:
        self._counter.activate()

    def deactivate(self) -> None:
        self._counter.deactivate()

    def close(self) -> None:
        self._counter.close()


class PartitionCountCoordinator(CountCoordinator[PartitionedCoordinator]):
    """Of a partitioned spout, for which the number of transactions decides when the input ends."""

    def follow(self, positions: LastPositions) -> None:
        super().follow(positions)
        self._counter.follow(self)

    def is_exhausted(self, last: Any) -> bool:
        return expect_truth("is_exhausted", self._counter.is_exhausted(self._last_txid))

    def progress(self, last: Any) -> float | None:
        return self._counter.progress(self._last_txid)


class OpaqueCountCoordinator(CountCoordinator[OpaquePartitionedCoordinator]):
    """Of an opaque spout, for which the positions of partitions decide when the input ends."""

    def is_exhausted(self, last: Any) -> bool:
        return expect_truth("is_exhausted", self._counter.is_exhausted(self.by_partition(), self.pending()))

    def progress(self, last: Any) -> float | None:
        return self._counter.progress(self.by_partition())
