"""The differences between the kinds of spout in one place; the rest of the framework treats them alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_made, expect_tasks
from coordinator.spouts.batch_emitters import (
    BatchEmitter,
    OpaqueBatches,
    PartitionBatches,
    StoredPositions,
    WholeBatches,
)
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.errors import TopologyError

Spout = ITransactionalSpout | IPartitionedTransactionalSpout | IOpaquePartitionedTransactionalSpout


@dataclass(frozen=True, slots=True)
class _Parts:
    """The classes of a kind of spout: its coordinator, its emitter, and the runner of its emitters."""

    coordinator: type
    emitter: type
    runs: type[BatchEmitter]


_PARTS: Mapping[type, _Parts] = {
    ITransactionalSpout: _Parts(SpoutCoordinator, SpoutEmitter, WholeBatches),
    IPartitionedTransactionalSpout: _Parts(PartitionedCoordinator, PartitionedEmitter, PartitionBatches),
    IOpaquePartitionedTransactionalSpout: _Parts(PartitionedCoordinator, OpaquePartitionedEmitter, OpaqueBatches),
}


class SpoutKind:
    """One spout, handled as its kind requires; made on the driver and in emitter tasks.

    Its methods call user code and pass on its exceptions; a factory method with a wrong return value raises
    `WrongAnswerError`.

    Args:
        spec: the user's spout; the builder has already refused anything else.

    Attributes:
        is_opaque: its emitters cut each attempt again, and their positions are stored with the commit, not before.
        has_partitions: its emitters cut partitions; the coordinator only returns their number.
        has_committer: the spout is notified of durable transactions.

    Raises:
        TopologyError: `spec` implements none of the three interfaces.
    """

    def __init__(self, spec: Any) -> None:
        parts = next((parts for interface, parts in _PARTS.items() if isinstance(spec, interface)), None)
        if parts is None:
            wanted = ", ".join(interface.__name__ for interface in _PARTS)
            raise TopologyError(f"{type(spec).__name__} is not a transactional spout; implement one of {wanted}")
        self._spec, self._parts = spec, parts
        self.is_opaque = parts.runs is OpaqueBatches
        self.has_partitions = parts.runs is not WholeBatches
        self.has_committer = isinstance(spec, ICommitterTransactionalSpout)

    @property
    def destruction(self) -> str:
        """How the spout destroys its input after the commit; "" if it does not."""
        return str(self._spec.destruction) if self.has_committer else ""

    def find_input(self) -> None:
        """Checks that the input exists."""
        self._spec.find_input()

    def fingerprint(self) -> Any:
        """Returns the user's answer, unchecked."""
        return self._spec.fingerprint()

    def coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        """Makes the coordinator (driver, once a run)."""
        made: SpoutCoordinator = expect_made(
            self._parts.coordinator, "get_coordinator", self._spec.get_coordinator(conf, context)
        )
        return made

    def committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter | None:
        """Makes the spout's committer, None if it has none (driver, once a run)."""
        if not self.has_committer:
            return None
        made: SpoutCommitter = expect_made(SpoutCommitter, "get_committer", self._spec.get_committer(conf, context))
        return made

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        """Returns the indexes of the tasks with a share of a batch (executor); partitions are assigned round robin."""
        if self.has_partitions:
            return range(min(int(metadata), task_count))
        return expect_tasks(self._spec.emitting_tasks(txid, metadata, task_count), task_count)

    def emitter(self, context: TopologyContext, stored: StoredPositions) -> BatchEmitter:
        """Makes the emitter of one task (executor, once per task and wave)."""
        made = expect_made(self._parts.emitter, "get_emitter", self._spec.get_emitter(context.conf, context))
        return self._parts.runs(made, context, stored)
