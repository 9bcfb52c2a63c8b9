"""The interface of observers of a plain topology's tasks: tests, metrics and hooks."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.streams.pending_message import PendingMessage
from coordinated_bolt.streams.plain_tuple import PlainTuple
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt


class TaskObserver:
    """Is notified after each step of one task, in order; this base class does nothing.

    Called where the task runs, on its thread; an exception ends the run.
    """

    def emitted(self, stream_id: str, values: list[Any], receivers: list[int]) -> None:
        """A tuple was emitted; called once, however many tasks receive it."""

    def executed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has executed a tuple; the latency is the duration of its `execute`."""

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has acked a tuple; the latency counts from when the bolt received it."""

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has failed a tuple; the latency counts from when the bolt received it."""

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        """A task of a sub-topology has finished or failed a batch.

        `emitted` reports what its bolt emits; its tuples are neither acked nor failed one by one.
        """

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message is processed; the latency counts from when it emitted the message."""

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message failed or timed out; the latency counts from when it emitted the message."""
