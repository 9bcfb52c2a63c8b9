"""Base classes of users' batch bolts, and callbacks for the end of a batch on its task.

Source of the callbacks: backtype.storm.coordination.CoordinatedBolt.FinishedCallback and .TimeoutCallback.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.tuple_batch import TupleBatch
from state.attempt import TransactionAttempt


class IBatchBolt(IComponent):
    """Processes the tuples of one attempt at one transaction, or of one batch of a sub-topology, on one task.

    Every (task, attempt) gets a new instance, made from the shipped bolt: `__init__` runs once, on the driver, and its
    attributes must pickle; `prepare` runs where the tuples are. An instance sees `prepare`, then `execute` for every
    tuple, then `finish_batch`, and in any case `cleanup` at the end. A bolt that defines `execute_batch` gets tuples in
    batches instead, as columns; its results must not depend on the boundaries between batches. Attempts fail and are
    tried again, so side effects outside declared state happen at least once; use ``attempt.txid`` to make them
    idempotent.

    Any of the methods may raise `FailedException` to have the transaction replayed. Any other
    exception stops the run after the lower transactions are committed. In a sub-topology (see
    `BatchSubtopologyBuilder`) the attempt is the batch: `FailedException` fails the tuple that began it, and
    batches have no order, no declared state and nothing to publish.

    Source: backtype.storm.coordination.IBatchBolt. Differs from Storm: the framework carries the attempt
    (``tup.attempt``) instead of the first value of each tuple; `cleanup` is called.
    """

    skips_empty_batches: ClassVar[bool] = False
    """True means that the bolt has nothing to do for a batch without tuples at its task: no instance is made, so
    neither `prepare` nor `finish_batch` is called. With many tasks and small transactions that saves most of the work.
    Leave it False for a bolt that emits, counts or writes even for an empty batch.
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
    def execute(self, tup: Any, /) -> None:
        """Called for every tuple of the attempt that reaches this task.

        The argument is a `Tuple`; or, if the parameter is annotated with a NamedTuple or a dataclass, an object of that
        class, whose fields must be among those of every stream to which the bolt subscribes. The values of a stretch of
        tuples are checked together; a value of another type than declared is a TypeError.

        If Spark repeats the work, the order is the same.
        """

    def execute_batch(self, batch: TupleBatch) -> None:
        """Called instead of `execute`, if the bolt's class defines it, for tuples that arrived together.

        Every tuple of the attempt that reaches this task is in exactly one batch, in the order in which `execute` would
        see them; a batch has at least one. If the bolt raises, the error names the whole batch. Hooks are notified of
        each tuple after the batch. This default calls `execute` for each tuple.
        """
        for tup in batch:
            self.execute(tup)

    @abstractmethod
    def finish_batch(self) -> None:
        """Called once all tuples of the attempt have been executed, even if there were none; see `skips_empty_batches`.

        For a committer it is called in txid order and is the only place where declared state is open. It may be called
        again on a new instance; the earlier instance's writes are then discarded.
        """

    def cleanup(self) -> None:
        """Called last, after success and failure alike, to release what `prepare` acquired."""


class BaseBatchBolt(IBatchBolt):
    """An `IBatchBolt` that stores the arguments of `prepare`; its `execute` and `finish_batch` do nothing.

    Define `execute` or `execute_batch`, even if `execute` does nothing: the builder refuses a bolt with neither, since
    that usually means a misspelled name.

    Call ``super().prepare(...)`` if you override it and use the attributes.
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

    def execute(self, tup: Any, /) -> None:
        """Does nothing."""

    def finish_batch(self) -> None:
        """Does nothing."""


class FinishedCallback(ABC):
    """Marks a bolt that wants to know when an attempt is complete on its task.

    For an `IBatchBolt` the call follows `finish_batch`, which means the same; for an `IBasicBolt` it is the only way to
    know.
    """

    @abstractmethod
    def finished_id(self, attempt: TransactionAttempt) -> None:
        """Called once all tuples of the attempt have been executed, even if there were none (executor).

        As in `finish_batch`, tuples may still be emitted, and a committer's declared state is open. An exception is
        treated like one from `finish_batch`. The attempt may still fail: another task may fail it, and then it is
        replayed with a new attempt id. Like `finish_batch`, this may be called again for the same attempt, on a new
        instance.
        """


class TimeoutCallback(ABC):
    """Marks a bolt that wants to know when an attempt has failed on its task.

    Differs from Storm: the bolt is notified of every attempt that ends unfinished, its own failures included, not only
    of timeouts.
    """

    @abstractmethod
    def timeout_id(self, attempt: TransactionAttempt) -> None:
        """Called when the attempt ends without success on this task, before `cleanup` (executor).

        The cause is a failure upstream, an incomplete batch, or an exception of the bolt itself, even in `prepare`. It
        is not called if there is no bolt because nothing of the attempt arrived, nor if the worker is killed, as Spark
        does when a wave is cancelled. In the commit phase a new instance may later run the same attempt. Exceptions are
        dropped: the attempt already has a failure.
        """
