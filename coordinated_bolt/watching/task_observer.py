"""The one way to watch a task: it tells its observer, observers tell each other, the last one tells hooks.

Recorders of tests, metrics and counters are observers. `ITaskHook` is for users only; nothing of ours is one.
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
    """Is told after each step of one task, in order; this one ignores it all.

    Called by tasks of every kind, where the task runs, on its thread. What it raises counts as raised by the bolt
    or spout.
    """

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        """A tuple was emitted, once however many tasks receive it; keep copies of its values, not the values.

        `attempt` is the attempt, or the batch of a sub-topology, that it belongs to.
        """

    def executed(self, tup: Tuple, latency_ns: int) -> None:
        """A bolt has executed a tuple, in that time."""

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has acked a tuple, that time after it was given it."""

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has failed a tuple, that time after it was given it."""

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        """A task of a sub-topology has finished a batch, or it failed there.

        What its bolt emitted and executed, which `metrics` counts, was told one by one; tuples of a batch are acked
        or failed together.
        """

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message is processed, that time after it had emitted it."""

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was told that a message has failed or timed out, that time after it had emitted it."""
