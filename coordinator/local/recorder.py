"""What tasks did, written down for tests."""

from __future__ import annotations

from typing import Any

from coordinated_bolt import EmitInfo, Failure, ITaskHook, PendingMessage, TaskMetrics, TaskObserver
from state import TransactionAttempt, own_copy

Emission = tuple[str, list[Any]]
"""Stream id and values of one tuple."""


class AttemptRecorder(ITaskHook):
    """Watches one task of a transactional topology: what it emitted in the last attempt at each transaction."""

    def __init__(self) -> None:
        self._by_txid: dict[int, list[Emission]] = {}

    def begin(self, txid: int) -> None:
        """The task begins anew with a transaction; what it emitted before is void."""
        self._by_txid[txid] = []

    def emissions(self, txid: int) -> list[Emission]:
        """What was emitted in a transaction, in order."""
        return list(self._by_txid.get(txid, ()))

    def txids(self) -> set[int]:
        """The transactions it has begun with."""
        return set(self._by_txid)

    def emit(self, info: EmitInfo) -> None:
        assert info.attempt is not None
        self._by_txid[info.attempt.txid].append((info.stream_id, list(info.values)))


class Recorder(TaskObserver):
    """Observes all tasks of one component of a plain topology.

    Attributes:
        emissions: (stream id, values) of every tuple emitted, in order.
        acked_ids: message ids, in order.
        failed_ids: message ids, in order.
        batch_failures: why batches of a sub-topology failed, in order.
    """

    def __init__(self) -> None:
        self.emissions: list[Emission] = []
        self.acked_ids: list[Any] = []
        self.failed_ids: list[Any] = []
        self.batch_failures: list[Failure] = []

    def emitted(self, stream_id: str, values: list[Any], receivers: list[int]) -> None:
        self.emissions.append((stream_id, list(map(own_copy, values))))

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        if failure is not None:
            self.batch_failures.append(failure)

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        self.acked_ids.append(message.message_id)

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        self.failed_ids.append(message.message_id)
