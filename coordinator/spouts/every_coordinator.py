"""What the coordinators of all kinds of spouts have, and those of spouts with partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar


class EverySpoutCoordinator:
    """The base of the coordinators of all spouts (driver; never called in parallel).

    Attributes:
        run_so_far: how far the topology is; set by the run before it calls anything else, and again before each
            `is_ready` and `is_exhausted`.

    Differs from Storm: in Storm a coordinator must keep count itself, which it cannot do across restarts.
    """

    run_so_far: RunSoFar = RunSoFar()

    def inform(self, run_so_far: RunSoFar) -> None:
        """Sets `run_so_far`; called by the run (driver)."""
        self.run_so_far = run_so_far

    def compare(self, former: FormerInput) -> InputChange | None:
        """Compares this input with what earlier runs have read; called once, before `resume`, if they have read any.

        If the fingerprint has changed, the result decides whether the run may continue on this input: the user has to
        accept what would be skipped, would be read again, or has changed (``--adopt=…``). If it has not, only what has
        changed or is impossible counts.

        Returns:
            The differences. None, the default, means that the spout cannot compare: then another input must be
            accepted unchecked, and the same one is accepted as it is.
        """
        return None

    def deactivate(self) -> None:
        """Called when a pause begins: nothing new is cut until `activate`, while what is in flight commits.

        Follows `Coordinator.deactivate`, on the thread of the run. Not called for a pause that ends before the run
        has noticed it.
        """

    def activate(self) -> None:
        """Called when a pause ends, before any other method; not called at the start."""

    def close(self) -> None:
        """Called once, when the run ends."""


class CountsPartitions(EverySpoutCoordinator, ABC):
    """The part that the coordinators of partitioned and opaque spouts share."""

    @abstractmethod
    def number_of_partitions(self) -> int:
        """Returns the current number of partitions."""

    @abstractmethod
    def is_finite(self) -> bool:
        """Returns whether the input ends by itself."""

    def first_positions(self, positions: Mapping[int, Any]) -> Mapping[int, Any]:
        """Returns partition -> where its first batch begins, for partitions that were never read.

        Override it if that depends on the moment, such as the end of a log. Called once a run, before anything is cut,
        and again after a `FailedException`. The answer is stored at once, before anything is cut, so every attempt and
        every later run begins there, even if this run dies before its first transaction. A partition that is left out
        begins from None.

        Args:
            positions: partition -> its last position, of this run and earlier ones; for these the answer is ignored.
        """
        return {}

    def is_ready(self) -> bool:
        """Returns whether another transaction may be started; not called for one that is replayed.

        `run_so_far` says how far the run is.
        """
        return True


class PartitionPositions(Protocol):
    """How far the partitions of a spout were cut; a live view, for the spout's coordinator on the driver."""

    def by_partition(self) -> Mapping[int, Any]:
        """Returns partition -> what its emitter returned last, committed or not, for partitions that were read."""

    def pending(self) -> int:
        """Returns the number of transactions started but not in `by_partition` yet: they will read further."""
