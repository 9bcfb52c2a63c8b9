"""The partitioned transactional spout: the input has partitions, each with its own position.

The coordinator fixes only the number of partitions. The first attempt at a txid that is processed cuts
each partition from where the transaction before left it; what was cut is stored before the commit phase,
and every later attempt reads exactly that again. (An attempt that fails before has published nothing, so
the next may cut anew.) Task k of n owns the partitions k, k+n, k+2n, …
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_truth
from coordinator.spouts.count_coordinator import CountCoordinator, PartitionPositions, Positions, partition_scope
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.run_so_far import KnowsRunSoFar
from state.attempt import TransactionAttempt
from state.codec import pack_exact
from state.own_copy import own_copy
from state.rotating_transactional_state import RotatingTransactionalState


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


class PartitionCountCoordinator(CountCoordinator):
    """The coordinator of a partitioned spout, for which the input ends after a number of transactions."""

    def __init__(self, coordinator: PartitionedCoordinator) -> None:
        super().__init__(coordinator)
        self._coordinator = coordinator

    def follow(self, positions: Positions) -> None:
        super().follow(positions)
        self._coordinator.follow(self)

    def is_ready(self) -> bool:
        # the user's object is not told how far earlier runs came; the number it is asked with here says it
        return not self.is_exhausted(None) and expect_truth("is_ready", self._coordinator.is_ready())

    def is_exhausted(self, last: Any) -> bool:
        return expect_truth("is_exhausted", self._coordinator.is_exhausted(self._last_txid))

    def progress(self, last: Any) -> float | None:
        return self._coordinator.progress(self._last_txid)


class PartitionBatches:
    """Runs a partitioned emitter for one task over the attempts of a wave.

    Args:
        emitter: the user's emitter.
        states: partition -> its rotating state, filled with what is stored.
    """

    def __init__(self, emitter: PartitionedEmitter, states: Mapping[int, RotatingTransactionalState]) -> None:
        self._emitter = emitter
        self._states = states

    def emit(
        self, attempt: TransactionAttempt, partitions: Sequence[int], collector: BatchOutputCollector
    ) -> dict[str, Any]:
        """Emits the attempt's batch of every partition.

        Returns:
            Scope -> metadata, of the partitions that were cut anew and have to be stored.
        """
        cut: dict[str, Any] = {}
        for partition in partitions:
            state = self._states[partition]
            if state.has_cache(attempt.txid):
                stored = state.get_state(attempt.txid, _must_be_stored)
                if stored is not None:
                    self._emitter.emit_partition_batch(attempt, collector, partition, own_copy(stored))
                continue

            def cut_new(txid: int, last: Any, partition: int = partition) -> Any:
                last = own_copy(last)
                return _checked(partition, self._emitter.emit_partition_batch_new(attempt, collector, partition, last))

            cut[partition_scope(partition)] = state.get_state(attempt.txid, cut_new)
        return cut

    def close(self) -> None:
        """Closes the user's emitter."""
        self._emitter.close()


def _checked(partition: int, metadata: Any) -> Any:
    """A copy of metadata; refuses what no batch could be read again from, here where it is known whose it is."""
    if metadata is None:
        raise TypeError(
            f"emit_partition_batch_new returned None for partition {partition}; return where its batch lies, "
            "an empty one too: the next begins after it"
        )
    pack_exact(metadata)
    return own_copy(metadata)


def _must_be_stored(txid: int, last: Any) -> Any:
    raise AssertionError(f"metadata of txid {txid} was stored a moment ago")
