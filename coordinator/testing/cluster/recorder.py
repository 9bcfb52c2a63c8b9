"""Records the emissions, acks and failures of tasks, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.streams.plain_tuple import PendingMessage
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinated_bolt.watching.task_observer import TaskObserver
from state.attempt import TransactionAttempt
from state.values.own_copy import own_copy

Emission = tuple[str, list[Any]]
"""Stream id and values of one tuple."""


class AttemptRecorder(TaskObserver):
    """Observes one task of a transactional topology and records what it emits in each attempt."""

    def __init__(self) -> None:
        self._by_attempt: dict[TransactionAttempt, list[Emission]] = {}
        self._last: dict[int, TransactionAttempt] = {}

    def begin(self, attempt: TransactionAttempt) -> None:
        """Called when the task begins an attempt, perhaps again: its earlier emissions in the attempt are dropped."""
        self._by_attempt[attempt] = []
        self._last[attempt.txid] = attempt

    def emissions(self, attempt: TransactionAttempt) -> list[Emission]:
        """Returns the emissions in an attempt, in order."""
        return list(self._by_attempt.get(attempt, ()))

    def last_attempts(self) -> Mapping[int, TransactionAttempt]:
        """Returns txid -> the last attempt that the task has begun."""
        return self._last

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        assert attempt is not None, "a task of a transactional topology emits in attempts only"
        self._by_attempt[attempt].append((stream_id, list(map(own_copy, values))))


class Recorder(TaskObserver):
    """Observes all tasks of one component of a plain topology.

    Attributes:
        emissions: (stream id, values) of every tuple emitted, in order.
        batch_failures: why batches of a sub-topology failed, in order.
    """

    def __init__(self) -> None:
        self.emissions: list[Emission] = []
        self.acked_ids: list[Any] = []  # both lists in the order in which messages ended
        self.failed_ids: list[Any] = []
        self.batch_failures: list[Failure] = []

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        self.emissions.append((stream_id, list(map(own_copy, values))))

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        if failure is not None:
            self.batch_failures.append(failure)

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        self.acked_ids.append(message.message_id)

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        self.failed_ids.append(message.message_id)
