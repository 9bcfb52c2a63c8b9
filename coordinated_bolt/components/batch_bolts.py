"""What users subclass to process batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.tuples import Tuple
from state.attempt import TransactionAttempt


class BatchOutputCollector(Protocol):
    """How a bolt or emitter sends tuples on, within one attempt.

    Source: backtype.storm.coordination.BatchOutputCollector.
    """

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple, as its values are now; returns the task ids that receive it.

        Raises:
            ValueError: the tuple does not fit the stream; it is a mapping or a set, which has no order.
            CodecError: a value cannot travel; the message says which types do.
        """

    def emit_all(self, rows: Iterable[Sequence[Any]], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, as `emit` one by one would, several times faster."""

    def emit_direct(self, task_id: int, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""


class IBatchBolt(IComponent):
    """Processes the tuples of one attempt at one transaction, or of one batch of a sub-topology, on one task.

    A new instance is made from the shipped bolt for every (task, attempt): `__init__` runs on the
    driver, once, and what it sets must pickle; `prepare` runs where the tuples are. An instance sees
    `prepare`, then `execute` for every tuple, then `finish_batch`, and `cleanup` at the end in any
    case. Attempts fail and are tried again, so side effects outside declared state happen at least
    once; ``attempt.txid`` is what to make them idempotent with.

    Any of the methods may raise `FailedException` to have the transaction replayed. Any other
    exception stops the run after the lower transactions are committed. In a sub-topology, see
    `BatchSubtopologyBuilder`, the attempt is the batch: `FailedException` fails the tuple that began it, and there
    is no order between batches, no declared state and nothing to publish.

    Source: backtype.storm.coordination.IBatchBolt. Differs from Storm: the attempt is not the first
    value of each tuple but carried along (``tup.attempt``); a `cleanup` that is called.
    """

    @abstractmethod
    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        """Called first, once per instance (executor)."""

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Called for every tuple of the attempt that reaches this task.

        The order is the same when the same work is done again.
        """

    @abstractmethod
    def finish_batch(self) -> None:
        """Called once all tuples of the attempt have been executed, also when there were none.

        For a committer: called in txid order; the only place where declared state is open. It may be
        called again on a new instance; what the earlier one wrote is discarded.
        """

    def cleanup(self) -> None:
        """Called last, after success and failure alike, to let go of what `prepare` took."""


class BaseBatchBolt(IBatchBolt):
    """An `IBatchBolt` that keeps what `prepare` is given and ignores tuples unless told otherwise.

    Who overrides `prepare` and uses the attributes calls ``super().prepare(...)``.
    """

    conf: Mapping[str, Any]
    context: TopologyContext
    collector: BatchOutputCollector
    attempt: TransactionAttempt

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self.conf, self.context, self.collector, self.attempt = conf, context, collector, attempt

    def execute(self, tup: Tuple) -> None:
        """Does nothing."""

    def finish_batch(self) -> None:
        """Does nothing."""
