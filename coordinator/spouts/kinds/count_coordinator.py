"""The driver side that partitioned and opaque spouts share: their metadata is a number of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from coordinator.spouts.answers import expect_count, expect_positions
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.kinds.partition_scopes import partition_of, partition_scope
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator
from state.values.own_copy import own_copy


class LastPositions(Protocol):
    """The position of every partition, as the driver knows it."""

    def last_positions(self) -> Mapping[str, Any]:
        """Returns scope -> its last position, committed or not."""

    def last_cut_number(self) -> int:
        """Returns the spout's number of the highest transaction whose positions are known, or that is committed."""


class CountsPartitions(Protocol):
    """The part of a user's coordinator that both kinds of spout have."""

    def number_of_partitions(self) -> int:
        """Returns the current number of partitions."""

    def first_positions(self, positions: Mapping[int, Any]) -> Mapping[int, Any]:
        """Returns where partitions begin that were never read."""

    def inform(self, run_so_far: RunSoFar) -> None:
        """See `KnowsRunSoFar.inform`."""

    def is_finite(self) -> bool:
        """Returns whether the input ends by itself."""

    def compare(self, former: FormerInput) -> InputChange | None:
        """See `SpoutCoordinator.compare`."""

    def activate(self) -> None:
        """See `SpoutCoordinator.activate`."""

    def deactivate(self) -> None:
        """See `SpoutCoordinator.deactivate`."""

    def close(self) -> None:
        """Called once, when the run ends."""


class CountCoordinator(SpoutCoordinator):
    """Adapts the coordinator of a spout with partitions to `SpoutCoordinator`; subclasses know when the input ends.

    Args:
        counter: the user's coordinator.
    """

    def __init__(self, counter: CountsPartitions) -> None:
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
