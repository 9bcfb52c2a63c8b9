"""The opaque partitioned spout: a replay may be cut differently, so nothing is kept before the commit.

For inputs that cannot promise to give the same batch twice: a partition may be away for a while, or hold
more by then. Each partition has a position. A batch starts from the position the transaction before left,
committed or not, and the position it leaves is stored by the very commit that publishes it. When an attempt
fails, it and all later ones are void with their positions, and are cut anew from the position below.
That is why each value still counts exactly once.

Task k of n owns the partitions k, k+n, k+2n, …; their number is fixed once for every attempt, by the driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.run_so_far import KnowsRunSoFar
from state.attempt import TransactionAttempt


class OpaquePartitionedCoordinator(KnowsRunSoFar, ABC):
    """Knows how many partitions there are, and when the input ends (driver; nothing here runs in parallel).

    Source: backtype.storm.transactional.partitioned.IOpaquePartitionedTransactionalSpout.Coordinator.
    Differs from Storm: the number of partitions is asked here, once an attempt. There every emitter task asks
    for itself, and two that hear different numbers read a partition twice or not at all.
    """

    @abstractmethod
    def number_of_partitions(self) -> int:
        """The number of partitions now; asked once for every attempt, so it may change between two of a txid.

        A partition beyond the number has no part in the attempt and keeps its position until it is back.
        """

    def is_ready(self) -> bool:
        """Whether a further transaction may be started; not asked for one that is tried again.

        `run_so_far` tells how far the run is.
        """
        return True

    def is_exhausted(self, positions: Mapping[int, Any], pending: int) -> bool:
        """Whether the input ends with the transactions started so far.

        Asked before another one is started, and again when nothing is under way: only then it ends the run.
        An input that can be told apart by its positions may ignore `pending`; then some of the last
        transactions are empty.

        Args:
            positions: partition -> where it was last read to, committed or not; partitions without one are left out.
            pending: transactions started that are not in `positions` yet: they read on from there.
        """
        return False

    def is_finite(self) -> bool:
        """Whether the input ends by itself; the default goes by who overrides `is_exhausted`."""
        return type(self).is_exhausted is not OpaquePartitionedCoordinator.is_exhausted

    def progress(self, positions: Mapping[int, Any]) -> float | None:
        """Which part of the input is read, from 0 to 1, for the progress bar; None if that is unknown.

        Args:
            positions: as for `is_exhausted`.
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


class OpaquePartitionedEmitter(ABC):
    """Reads partitions (executor; one per task and wave).

    Source: backtype.storm.transactional.partitioned.IOpaquePartitionedTransactionalSpout.Emitter.
    """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        """Cuts and emits a batch of a partition; called once per attempt and partition, in txid order.

        Two attempts at a txid may emit different tuples, but only what lies behind `last`. If the partition
        has nothing or cannot be reached, emit nothing and return `last`.

        Args:
            attempt: the attempt.
            collector: where tuples go.
            partition: from 0.
            last: the position this batch starts from; None if the partition has none yet.

        Returns:
            The position the next batch starts from: plain data. None, having emitted nothing, leaves the
            position as it was.
        """

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once, after the last batch."""


class IOpaquePartitionedTransactionalSpout(IComponent):
    """The spec of a spout whose batches are cut partition by partition, and again for every attempt.

    Choose it if a replay cannot be promised to read the same; else `IPartitionedTransactionalSpout`, whose
    replays are exact.

    Source: backtype.storm.transactional.partitioned.IOpaquePartitionedTransactionalSpout.
    """

    @abstractmethod
    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedCoordinator:
        """Makes the coordinator (driver, once a run)."""

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    def fingerprint(self) -> str:
        """One readable line that changes when the input is another one; see `ITransactionalSpout`."""
        return f"{type(self).__module__}.{type(self).__qualname__}"
