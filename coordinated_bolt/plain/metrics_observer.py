"""Measures what the tasks of one component of a plain topology do."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.streams.plain_tuple import PendingMessage, PlainTuple
from coordinated_bolt.streams.tuples import Tuple
from coordinated_bolt.watching.metrics import ComponentMetrics, TaskMetrics
from coordinated_bolt.watching.task_observer import TaskObserver
from state.attempt import TransactionAttempt


class MetricsObserver(TaskObserver):
    """Measures any number of tasks of one component.

    Args:
        observer: notified first; None if there is none.

    Attributes:
        metrics: the figures so far.
    """

    def __init__(self, observer: TaskObserver | None = None) -> None:
        self._observer = observer
        self.metrics = ComponentMetrics()

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        if self._observer is not None:
            self._observer.emitted(stream_id, values, receivers, attempt)
        work = self.metrics.work
        try:
            work.emitted[stream_id] += 1
            work.transferred[stream_id] += len(receivers)
        except KeyError:
            work.emitted[stream_id], work.transferred[stream_id] = 1, len(receivers)

    def executed(self, tup: Tuple, latency_ns: int) -> None:
        if self._observer is not None:
            self._observer.executed(tup, latency_ns)
        work, stream = self.metrics.work, tup.origin.name
        try:
            work.executed[stream] += 1
            work.execute_ns[stream] += latency_ns
        except KeyError:
            work.executed[stream], work.execute_ns[stream] = 1, latency_ns

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        if self._observer is not None:
            self._observer.acked(tup, latency_ns)
        self._count_ack(tup.origin.name, latency_ns)

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        if self._observer is not None:
            self._observer.failed(tup, latency_ns)
        _count(self.metrics.failed, tup.origin.name)

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        if self._observer is not None:
            self._observer.batch_ended(batch, failure, metrics)
        self.metrics.work.finish_ns += metrics.finish_ns
        self.metrics.work.batches += metrics.batches
        for run, tuple_count in metrics.executed.items():
            _count(self.metrics.acked if failure is None else self.metrics.failed, run, tuple_count)

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        if self._observer is not None:
            self._observer.message_acked(message, latency_ns)
        self._count_ack(message.stream_id, latency_ns)

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        if self._observer is not None:
            self._observer.message_failed(message, latency_ns)
        _count(self.metrics.failed, message.stream_id)

    def _count_ack(self, stream: str, latency_ns: int) -> None:
        metrics = self.metrics
        try:
            metrics.ack_ns[stream] += latency_ns
            metrics.acked[stream] += 1
        except KeyError:  # the first one; a sub-topology may have counted acks without a latency
            metrics.acked[stream] = metrics.acked.get(stream, 0) + 1
            metrics.ack_ns[stream] = latency_ns


def _count(counts: dict[str, int], name: str, amount: int = 1) -> None:
    counts[name] = counts.get(name, 0) + amount
