"""The collector handed to batch bolts and emitters: groups, counts and frames what they emit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordinated_bolt.outbox import RowOutbox
from coordinated_bolt.routing import OutputStream, Router
from coordinated_bolt.streams import DEFAULT_STREAM
from state.attempt import TransactionAttempt
from state.codec import digest64


class AttemptCollector:
    """The `BatchOutputCollector` of one attempt on one task.

    Args:
        component_id: whose task emits, for messages.
        task_id: which task.
        attempt: the attempt everything belongs to.
        streams: stream id -> stream, all the component declares.
        outbox: where rows go.
    """

    def __init__(
        self,
        *,
        component_id: str,
        task_id: int,
        attempt: TransactionAttempt,
        streams: Mapping[str, OutputStream],
        outbox: RowOutbox,
    ) -> None:
        seed = digest64(b"%d %d %d" % (attempt.txid, attempt.attempt_id, task_id))
        self._router = Router(component_id, streams, seed)
        self._outbox = outbox
        self.emitted_count = 0

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it."""
        stream, row, receivers = self._router.route(values, stream_id)
        for task in receivers:
            self._outbox.add(task, stream, row)
        self.emitted_count += 1
        return receivers

    def emit_all(self, rows: Iterable[Sequence[Any]], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, as `emit` one by one would."""
        stream, lists, choosers = self._router.route_all(list(rows), stream_id)
        for chooser, tasks in choosers:
            for position, share in chooser.split(lists).items():
                self._outbox.add_all(tasks[position], stream, share)
        self.emitted_count += len(lists)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        stream, row = self._router.route_direct(task_id, values, stream_id)
        self._outbox.add(task_id, stream, row)
        self.emitted_count += 1
