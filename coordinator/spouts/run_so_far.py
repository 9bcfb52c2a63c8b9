"""How far a topology is, and what coordinators of all kinds of spouts are asked about it.

A run that continues on another input must neither skip anything nor read anything twice unless the user accepts it.
Only the spout can compare inputs, because only it knows what a position means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """How far a topology is, over this run and earlier ones.

    A spout's txids number its own batches: replays of quarantined batches are left out.

    Attributes:
        last_txid: the highest txid that was cut, 0 if there is none; the next one is one higher.
        last: what was returned for it: the metadata of `initialize_transaction`, or the number of partitions; None if
            nothing is stored, as at the start of a run of an opaque spout.
        committed_txid: the last committed txid, 0 if there is none.
    """

    last_txid: int = 0
    last: Any = None
    committed_txid: int = 0

    @property
    def pending(self) -> int:
        """The number of transactions that were cut and are not committed."""
        return self.last_txid - self.committed_txid


@dataclass(frozen=True, slots=True)
class FormerInput:
    """How far earlier runs have read, and what they remember of it.

    Attributes:
        fingerprint: of the input they ran on.
        is_same: whether this input has the same fingerprint; then compare only what a fingerprint does not show.
        last_txid: the highest txid that was cut, committed or not.
        last: its metadata; None for an opaque spout, which stores none ahead.
        pending: metadata of the transactions that were cut and not committed, which are read again as they were cut.
        positions: partition -> what its emitter returned last, for spouts with partitions.
        notes: name -> the last note of that name; see `SpoutCoordinator.notes`.
    """

    fingerprint: str
    is_same: bool
    last_txid: int
    last: Any = None
    pending: tuple[Any, ...] = ()
    positions: Mapping[int, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputChange:
    """The differences of an input, one sentence each; without any, the run continues as on the same input.

    Attributes:
        skipped: parts that were never read and never would be, because they lie before the position.
        again: parts that were read and would be read a second time.
        changed: parts that were read and have changed or are gone; their effect on the state stays.
        impossible: why a run cannot continue on this input at all.
        notes: name -> a note that replaces the former one once the change is accepted; None forgets it.
        renamed: parts that hold what was read under another name: the user says whether they are the same, and are not
            read again, or are read.
        again_notes: name -> a note that takes the place of that in `notes` if those parts are read again.
    """

    skipped: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    impossible: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    renamed: tuple[str, ...] = ()
    again_notes: Mapping[str, Any] = field(default_factory=dict)


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
