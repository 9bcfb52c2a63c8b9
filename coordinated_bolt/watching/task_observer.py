"""Whoever wants to know what a task of a plain topology does: tests, metrics, hooks."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.streams.pending_message import PendingMessage
from coordinated_bolt.streams.plain_tuple import PlainTuple
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt


class TaskObserver:
    """Is told after each step of one task, in order; this one does not care.

    Called where the task runs, on its thread; what it raises ends the run.
    """

    def emitted(self, stream_id: str, values: list[Any], receivers: list[int]) -> None:
        """A tuple was emitted, once however many tasks receive it."""

    def executed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has executed a tuple, in that time."""

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has acked a tuple, that time after it was given it."""

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has failed a tuple, that time after it was given it."""

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        """A task of a sub-topology has finished a batch, or it failed there.

        What its bolt emits is told by `emitted`; its tuples are neither acked nor failed one by one.
        """

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message is processed, that time after it had emitted it."""

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message has failed or timed out, that time after it had emitted it."""
