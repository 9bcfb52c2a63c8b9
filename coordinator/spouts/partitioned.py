"""The partitioned transactional spout: the input has partitions, each with its own position.

The coordinator fixes only the number of partitions. The first attempt at a txid that is processed cuts
each partition from where the transaction before left it; what was cut is stored before the commit phase,
and every later attempt reads exactly that again. (An attempt that fails before has published nothing, so
the next may cut anew.) Task k of n owns the partitions k, k+n, k+2n, …
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.partition_positions import PartitionPositions
from coordinator.spouts.run_so_far import KnowsRunSoFar
from state.attempt import TransactionAttempt


class PartitionedCoordinator(KnowsRunSoFar, ABC):
    """Knows how many partitions there are (driver).

    Source: backtype.storm.transactional.partitioned.IPartitionedTransactionalSpout.Coordinator.
    """

    def follow(self, read: PartitionPositions) -> None:
        """Hands over a view of how far each partition was cut; called once, before anything but `compare`.

        Keep it if the end of the input, or whether it is ready, depends on where the partitions stand.
        """

    @abstractmethod
    def number_of_partitions(self) -> int:
        """The number of partitions now; a transaction keeps the number it was first given."""

    def is_ready(self) -> bool:
        """Whether a further transaction may be started; `run_so_far` tells how far the run is."""
        return True

    def is_exhausted(self, number_of_transactions: int) -> bool:
        """Whether the input has ended.

        Args:
            number_of_transactions: how many have been started so far.
        """
        return False

    def is_finite(self) -> bool:
        """Whether the input ends by itself; the default goes by who overrides `is_exhausted`."""
        return type(self).is_exhausted is not PartitionedCoordinator.is_exhausted

    def progress(self, number_of_transactions: int) -> float | None:
        """Which part of the input is cut, from 0 to 1, for the progress bar; None if that is unknown.

        Args:
            number_of_transactions: how many have been started so far.
        """
        return None

    def compare(self, former: FormerInput) -> InputChange | None:
        """See `SpoutCoordinator.compare`; `former.positions` tells how far each partition was read."""
        return None

    def activate(self) -> None:
        """See `SpoutCoordinator.activate`."""

    def deactivate(self) -> None:
        """See `SpoutCoordinator.deactivate`."""

    def close(self) -> None:
        """Called once, when the run ends."""


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
            attempt: the attempt.
            collector: where tuples go.
            partition: from 0.
            last: metadata of the partition's previous batch, None for the first.

        Returns:
            Metadata of this batch: plain data but None, from which it can be read again.
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

    def fingerprint(self) -> str:
        """One readable line that changes when the input is another one; see `ITransactionalSpout`."""
        return f"{type(self).__module__}.{type(self).__qualname__}"
