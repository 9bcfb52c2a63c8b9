"""The partitioned transactional spout: the input has partitions, each with its own position.

The coordinator fixes only the number of partitions. The first attempt at a txid to be processed cuts each partition
from where the transaction before left it. What was cut is stored before the commit phase, and every later attempt
reads exactly that again. (An attempt that fails earlier has published nothing, so the next one may cut differently.)
Task k of n owns the partitions k, k+n, k+2n, …
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.run_so_far import CountsPartitions, PartitionPositions
from state.attempt import TransactionAttempt


class PartitionedCoordinator(CountsPartitions):
    """Knows how many partitions there are (driver).

    Source: backtype.storm.transactional.partitioned.IPartitionedTransactionalSpout.Coordinator.
    """

    def follow(self, read: PartitionPositions) -> None:
        """Takes a live view of how far each partition was cut; called once, before everything but `compare`.

        Keep it if `is_ready` or `is_exhausted` depends on the positions of the partitions.
        """

    @abstractmethod
    def number_of_partitions(self) -> int:
        """Returns the current number of partitions; a transaction keeps the number it was first given."""

    def is_exhausted(self, number_of_transactions: int) -> bool:
        """Returns whether the input has ended.

        Args:
            number_of_transactions: how many were started so far.
        """
        return False

    def is_finite(self) -> bool:
        """Returns whether the input ends by itself; by default, whether the class overrides `is_exhausted`."""
        return type(self).is_exhausted is not PartitionedCoordinator.is_exhausted

    def progress(self, number_of_transactions: int) -> float | None:
        """Returns the part of the input that is cut, from 0 to 1, for the progress bar; None if it is unknown.

        Args:
            number_of_transactions: how many were started so far.
        """
        return None


class PartitionedEmitter(ABC):
    """Reads partitions (executor; one per task and wave).

    Source: backtype.storm.transactional.partitioned.IPartitionedTransactionalSpout.Emitter.
    """

    @abstractmethod
    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        """Cuts and emits a new batch of a partition.

        Args:
            attempt: for which the batch is cut.
            collector: emits the tuples.
            partition: from 0.
            last: metadata of the partition's previous batch; for the first what
                `PartitionedCoordinator.first_positions` has given, or None.

        Returns:
            Metadata from which this batch can be read again: plain data, not None.
        """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, metadata: Any
    ) -> None:
        """Emits a batch again, exactly as it was first cut."""

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, after the last batch."""


class IPartitionedTransactionalSpout(IComponent):
    """The spec of a spout whose batches are cut partition by partition.

    Source: backtype.storm.transactional.partitioned.IPartitionedTransactionalSpout.
    """

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        """Makes the coordinator (driver, once a run)."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        """Returns what a transaction read of a partition; see `ITransactionalSpout.describe`.

        Args:
            partition: from 0.
            metadata: what the emitter has returned.
        """
        return ()

    def fingerprint(self) -> str:
        """Returns one readable line that changes with the input; see `ITransactionalSpout.fingerprint`."""
        return f"{type(self).__module__}.{type(self).__qualname__}"
