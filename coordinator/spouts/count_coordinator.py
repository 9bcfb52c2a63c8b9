"""What partitioned and opaque spouts share on the driver: their metadata is a number of partitions."""

from __future__ import annotations

from typing import Any, Protocol

from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import SpoutCoordinator


class CountsPartitions(Protocol):
    """The part of a user's coordinator that both kinds of spout have alike."""

    def number_of_partitions(self) -> int:
        """The number of partitions now."""

    def inform(self, run_so_far: RunSoFar) -> None:
        """See `KnowsRunSoFar.inform`."""

    def is_finite(self) -> bool:
        """Whether the input ends by itself."""

    def activate(self) -> None:
        """See `SpoutCoordinator.activate`."""

    def deactivate(self) -> None:
        """See `SpoutCoordinator.deactivate`."""

    def close(self) -> None:
        """Called once, when the run ends."""


class CountCoordinator(SpoutCoordinator):
    """Makes the coordinator of a spout with partitions look like any other; subclasses know when the input ends.

    Args:
        counter: the user's coordinator.
    """

    def __init__(self, counter: CountsPartitions) -> None:
        self._counter = counter
        self._last_txid = 0

    def initialize_transaction(self, txid: int, previous: Any) -> int:
        self._last_txid = txid - 1  # should the next line fail, then whatever stood higher is void
        count = self._counter.number_of_partitions()
        self._last_txid = txid
        return count

    def inform(self, run_so_far: RunSoFar) -> None:
        super().inform(run_so_far)
        self._counter.inform(run_so_far)

    def is_finite(self) -> bool:
        return self._counter.is_finite()

    def resume(self, last_txid: int, last: Any) -> None:
        self._last_txid = last_txid

    def activate(self) -> None:
        self._counter.activate()

    def deactivate(self) -> None:
        self._counter.deactivate()

    def close(self) -> None:
        self._counter.close()
