"""The partitioned transactional spout: the input has partitions, each with its own position.

The coordinator fixes only the number of partitions. The first attempt at a txid that is processed cuts each partition
from where the previous transaction ended. The cut is stored before the commit phase, and every later attempt reads
exactly the same again. (An attempt that fails earlier has published nothing, so the next one may cut differently.) Task
k of n owns the partitions k, k+n, k+2n, …
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_count
from coordinator.spouts.transactional import SpoutCoordinator, SpoutSpec
from state.attempt import TransactionAttempt


class PartitionedCoordinator(SpoutCoordinator):
    """Returns the number of partitions of a partitioned or opaque spout (driver; never called in parallel).

    `is_exhausted` is also called before a transaction is started: an exhausted input gets no new one, however often a
    run is started. Transactions that have started but not read yet are counted in ``run_so_far.ahead``; a spout that
    uses only ``run_so_far.positions`` has some empty transactions at the end.

    Source: backtype.storm.transactional.partitioned.IPartitionedTransactionalSpout.Coordinator and
    IOpaquePartitionedTransactionalSpout.Coordinator. Differs from Storm: for an opaque spout too, the number of
    partitions is determined here, once per attempt. In Storm every emitter task asks by itself, and two tasks that see
    different numbers read a partition twice or not at all.
    """

    @abstractmethod
    def number_of_partitions(self) -> int:
        """Returns the current number of partitions.

        A transaction of a partitioned spout keeps its first number; an opaque spout is asked again for every attempt. A
        partition beyond that number is not read, and keeps its position until it is back.
        """

    def first_positions(self) -> Mapping[int, Any]:
        """Returns partition -> where its first batch begins, for partitions that were never read.

        Override it if that depends on the moment, such as the end of a log. Called once a run, before anything is cut,
        and again after a `FailedException`. The answer is stored at once, before anything is cut, so every attempt and
        every later run begins there, even if this run dies before its first transaction. A partition that is left out
        begins from None; a position for a partition that already has one in `run_so_far` is ignored.
        """
        return {}

    def is_ready(self) -> bool:
        return True

    def initialize_transaction(self, txid: int, previous: Any) -> int:
        """Returns the number of partitions, which is a transaction's metadata; do not override it."""
        return expect_count(self.number_of_partitions())


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
            attempt: the attempt for which the batch is cut.
            collector: emits the tuples.
            partition: the partition's number, from 0.
            last: metadata of the partition's previous batch; for the first batch, the position from
                `PartitionedCoordinator.first_positions`, or None.

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


class IPartitionedTransactionalSpout(SpoutSpec):
    """The spec of a spout whose batches are cut partition by partition.

    Source: backtype.storm.transactional.partitioned.IPartitionedTransactionalSpout.
    """

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        """Describes the input that a transaction read from a partition; see `ITransactionalSpout.describe`.

        Args:
            partition: the partition's number, from 0.
            metadata: the metadata that the emitter has returned.
        """
        return ()
