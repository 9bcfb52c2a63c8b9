"""What the tasks of one component did, written down for tests."""

from __future__ import annotations

from typing import Any

from coordinated_bolt import Failure, TaskObserver
from state import TransactionAttempt


class Recorder(TaskObserver):
    """Observes all tasks of one component.

    Attributes:
        emissions: (stream id, values) of every tuple emitted, in order.
        acked_ids: message ids, in order.
        failed_ids: message ids, in order.
        batch_failures: why batches failed, in order.
    """

    def __init__(self) -> None:
        self.emissions: list[tuple[str, list[Any]]] = []
        self.acked_ids: list[Any] = []
        self.failed_ids: list[Any] = []
        self.batch_failures: list[Failure] = []

    def emitted(self, stream_id: str, values: list[Any], receivers: list[int]) -> None:
        self.emissions.append((stream_id, values))

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None) -> None:
        if failure is not None:
            self.batch_failures.append(failure)

    def message_acked(self, message_id: Any) -> None:
        self.acked_ids.append(message_id)

    def message_failed(self, message_id: Any) -> None:
        self.failed_ids.append(message_id)
