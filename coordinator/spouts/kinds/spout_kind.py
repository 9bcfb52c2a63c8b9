"""The differences between the kinds of spout, as one strategy object; everything else treats them alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_made
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.kinds.count_coordinator import CountCoordinator, LastPositions
from coordinator.spouts.kinds.partition_cut import PartitionCut
from coordinator.spouts.transactional import SpoutCoordinator
from state.attempt import TransactionAttempt

StoredPositions = Mapping[str, Mapping[int, Any]]
"""Scope -> txid -> metadata of the partitions, as far as the driver knows it."""


@dataclass(frozen=True, slots=True)
class EmitOrder:
    """Tells an emitter which batch to emit.

    Attributes:
        attempt: for which it is emitted; what is stored is found under its txid.
        known_as: the attempt as user code sees it, under the spout's own number of the batch.
        scopes: the partitions to read when an opaque spout replays a quarantined batch; None reads all.
    """

    attempt: TransactionAttempt
    known_as: TransactionAttempt
    scopes: frozenset[str] | None = None


class BatchEmitter(Protocol):
    """A user's emitter as its task runs it (executor, one per task and wave)."""

    def emit(self, order: EmitOrder, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        """Emits this task's share of the attempt's batch; called once per attempt, in txid order.

        Args:
            order: which batch.
            metadata: of the spout's coordinator.
            collector: emits the tuples.

        Returns:
            Scope -> what was cut while emitting and has to be stored.
        """

    def close(self) -> None:
        """Closes the user's emitter."""


class SpoutKind(ABC):
    """One spout, handled as its kind requires; made by `kind_of`, on the driver and in emitter tasks.

    Its methods call user code and pass on whatever that raises.

    Args:
        spec: the user's spout.

    Attributes:
        is_opaque: each attempt is cut again, and what its emitters return is stored with the commit, not before.
        has_partitions: the coordinator's metadata is a number of partitions.
    """

    is_opaque: ClassVar[bool] = False
    has_partitions: ClassVar[bool] = False

    def __init__(self, spec: Any) -> None:
        self._spec = spec

    @property
    def has_committer(self) -> bool:
        """Whether the spout is to be told what is durable."""
        return isinstance(self._spec, ICommitterTransactionalSpout)

    @property
    def destruction(self) -> str:
        """What the spout destroys of its input once that is committed; "" for nothing."""
        return str(self._spec.destruction) if self.has_committer else ""

    def fingerprint(self) -> Any:
        """The line that identifies the input, as the user's spout returns it."""
        return self._spec.fingerprint()

    @abstractmethod
    def coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        """Makes the coordinator, adapted so that a run can treat every kind alike (driver, once a run).

        Raises:
            WrongAnswerError: the user's method returned something else.
        """

    def follow(self, coordinator: SpoutCoordinator, positions: LastPositions) -> None:
        """Gives the coordinator, which this kind made, the positions of partitions (driver, once, before it cuts)."""
        if isinstance(coordinator, CountCoordinator):
            coordinator.follow(positions)

    def first_positions(self, coordinator: SpoutCoordinator) -> Mapping[str, Any]:
        """Returns scope -> where a partition begins that was never read (driver, once a run, before it cuts).

        Raises:
            WrongAnswerError: the user's method returned something else.
        """
        return coordinator.first_positions() if isinstance(coordinator, CountCoordinator) else {}

    def committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter | None:
        """Makes the spout's committer, None if it has none (driver, once a run).

        Raises:
            WrongAnswerError: the user's method returned something else.
        """
        if not self.has_committer:
            return None
        made: SpoutCommitter = expect_made(SpoutCommitter, "get_committer", self._spec.get_committer(conf, context))
        return made

    @abstractmethod
    def emitter(self, context: TopologyContext, stored: StoredPositions) -> BatchEmitter:
        """Makes the emitter of one task (executor, once per task and wave).

        Args:
            context: of the task.
            stored: scope -> txid -> metadata of the partitions, as the driver knows it when the wave starts.

        Raises:
            WrongAnswerError: the user's method returned something else.
        """


def own_partitions(context: TopologyContext, count: Any) -> range:
    """Returns the partitions a task reads: k, k+n, k+2n, … of task k of n."""
    return range(context.task_index, int(count), context.task_count)
