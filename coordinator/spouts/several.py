"""The contract between a spout of several sources and what runs its emitters, of which some may be opaque.

Such a spout is a transactional one: its coordinator cuts a part of each source. Of an opaque source the part is only
the number of its partitions. Their emitter cuts them again in every attempt, and their positions are stored with the
commit. So one opaque source makes the batches of all of them opaque.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.opaque import OpaquePartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutEmitter
from state.attempt import TransactionAttempt


class CountingCollector(BatchOutputCollector, Protocol):
    """A collector that counts."""

    @property
    def emitted_count(self) -> int:
        """Tuples emitted on all streams."""


class SourcePart(NamedTuple):
    """What one task has to emit of one source.

    Attributes:
        source: its name.
        emitter: of the source.
        metadata: the part; of an opaque source the number of partitions.
        collector: emits on the streams of the source.
    """

    source: str
    emitter: Any
    metadata: Any
    collector: CountingCollector


class SeveralEmitter(SpoutEmitter):
    """The emitter of several sources (executor; one per task and wave).

    Attributes:
        opaque: source -> its emitter, of those that are opaque.
    """

    opaque: Mapping[str, OpaquePartitionedEmitter]

    @abstractmethod
    def parts(self, attempt: TransactionAttempt, metadata: Any, collector: CountingCollector) -> Iterator[SourcePart]:
        """Yields what this task has to emit of a batch, in the order of the sources."""

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        for part in self.parts(attempt, metadata, collector):
            part.emitter.emit_batch(attempt, part.metadata, part.collector)


class SeveralSources(ITransactionalSpout):
    """The spec of a spout that has several sources.

    Attributes:
        has_opaque: whether one of them is opaque.
    """

    has_opaque: bool

    @abstractmethod
    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SeveralEmitter:
        """Makes an emitter (executor, once per task and wave)."""

    @abstractmethod
    def describe_partition(self, partition: str, metadata: Any) -> Sequence[str]:
        """Returns what a transaction has read of a partition of an opaque source; see `describe`."""
