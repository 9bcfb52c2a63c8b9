"""The one way to watch a task: it notifies its observer, observers notify each other, the last one hooks.

Recorders of tests, metrics and counters are observers. `ITaskHook` is for users only; txbatch has no hooks of its own.
"""

from __future__ import annotations

from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.streams.pending_message import PendingMessage
from coordinated_bolt.streams.plain_tuple import PlainTuple
from coordinated_bolt.streams.tuples import Tuple
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt


class TaskObserver:
    """Is notified after each step of one task, in order; this base class does nothing.

    Called by tasks of every kind, where the task runs, on its thread. An exception counts as raised by the bolt
    or spout.
    """

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        """A tuple was emitted; called once, however many tasks receive it. Keep copies of the values, not the values.

        `attempt` is the attempt, or the batch of a sub-topology, that the tuple belongs to.
        """

    def executed(self, tup: Tuple, latency_ns: int) -> None:
        """A bolt has executed a tuple; the latency is the duration of its `execute`."""

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has acked a tuple; the latency counts from when the bolt received it."""

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has failed a tuple; the latency counts from when the bolt received it."""

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        """A task of a sub-topology has finished or failed a batch.

        The tuples that its bolt emitted and executed, which `metrics` counts, were reported one by one; the tuples of
        a batch are acked or failed together.
        """

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message is processed; the latency counts from when it emitted the message."""

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message failed or timed out; the latency counts from when it emitted the message."""
