"""The opaque partitioned spout: a replay may be cut differently, so nothing is stored before the commit.

It is for inputs that cannot promise to return the same batch twice: a partition may be unavailable for a while, or have
more data later. Each partition has a position. A batch starts at the position where the previous transaction ended,
committed or not, and its own end position is stored by the same commit that publishes it. When an attempt fails, it and
all later ones are void together with their positions, and are cut again from the position below. That is why each value
still counts exactly once.

Task k of n owns the partitions k, k+n, k+2n, …; the driver fixes their number once for every attempt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.transactional import SpoutSpec
from state.attempt import TransactionAttempt


class OpaquePartitionedEmitter(ABC):
    """Reads partitions (executor; one per task and wave).

    Source: backtype.storm.transactional.partitioned.IOpaquePartitionedTransactionalSpout.Emitter.
    """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        """Cuts and emits a batch of a partition; called once per attempt and partition, in txid order.

        Two attempts at a txid may emit different tuples, but only tuples after `last`. If the partition has nothing new
        or cannot be reached, emit nothing and return `last`.

        Args:
            attempt: the attempt for which the batch is cut.
            collector: emits the tuples.
            partition: the partition's number, from 0.
            last: the position from which this batch starts; None if the partition has none yet, see
                `PartitionedCoordinator.first_positions`.

        Returns:
            The position from which the next batch starts: plain data. None keeps the former position, and is allowed
            only if nothing was emitted.
        """

    def finish_batch(self, attempt: TransactionAttempt) -> None:  # noqa: B027 - optional by design
        """Called once the task's partitions are emitted; an exception fails the attempt.

        Use it to check that the input did not change while it was read, for instance that its id is still the same.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, after the last batch."""


class IOpaquePartitionedTransactionalSpout(SpoutSpec):
    """The spec of a spout whose batches are cut partition by partition, and again for every attempt.

    Choose it if the input cannot promise that a replay reads the same tuples; otherwise choose
    `IPartitionedTransactionalSpout`, whose replays are exact.

    Source: backtype.storm.transactional.partitioned.IOpaquePartitionedTransactionalSpout.
    """

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        """Describes the input that a transaction read from a partition; see `ITransactionalSpout.describe`.

        Args:
            partition: the partition's number, from 0.
            metadata: the metadata that the emitter has returned.
        """
        return ()
