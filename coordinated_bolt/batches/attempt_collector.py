"""The collector of batch bolts and emitters: routes what they emit, counts it and passes it to the outbox."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coordinated_bolt.components.task_hook import EmitInfo, ITaskHook
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.routing import Router
from coordinated_bolt.transport.outbox import RowOutbox
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.codec import digest64
from state.own_copy import own_copy


class AttemptCollector:
    """The `BatchOutputCollector` of one attempt on one task.

    Args:
        wiring: of the emitting task.
        attempt: the attempt that all tuples belong to.
        outbox: takes the rows.
        hooks: notified of every emit; the list may still grow.

    Attributes:
        emitted: stream id -> tuples emitted.
    """

    def __init__(
        self, wiring: TaskWiring, attempt: TransactionAttempt, outbox: RowOutbox, hooks: Sequence[ITaskHook] = ()
    ) -> None:
        seed = digest64(b"%d %d %d" % (attempt.txid, attempt.attempt_id, wiring.task_id))
        self._router = Router(wiring.component_id, wiring.streams, seed)
        self._streams = wiring.streams
        self._outbox = outbox
        self._task_id, self._attempt = wiring.task_id, attempt
        self._hooks = hooks
        self.emitted = dict.fromkeys(wiring.streams, 0)

    @property
    def emitted_count(self) -> int:
        """Tuples emitted on all streams."""
        return sum(self.emitted.values())

    def emit(self, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple; returns the task ids that receive it."""
        stream, row, receivers = self._router.route(values, stream_id)
        for task in receivers:
            self._outbox.add(task, stream, row)
        self.emitted[stream_id] += 1
        if self._hooks:
            self._tell_hooks(row, stream_id, receivers)
        return receivers

    def emit_all(self, rows: Iterable[Sequence[Any]], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples; like calling `emit` for each."""
        stream, lists, choosers = self._router.route_all(rows, stream_id)
        if self._hooks:
            for row in lists:
                self.emit(row, stream_id)
            return
        for chooser, tasks in choosers:
            for position, share in chooser.split(lists).items():
                self._outbox.add_all(tasks[position], stream, share)
        self.emitted[stream_id] += len(lists)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""
        stream, row = self._router.route_direct(task_id, values, stream_id)
        self._outbox.add(task_id, stream, row)
        self.emitted[stream_id] += 1
        if self._hooks:
            self._tell_hooks(row, stream_id, [task_id])

    def count_into(self, metrics: TaskMetrics) -> None:
        """Puts the numbers of tuples emitted and transferred into the attempt's metrics."""
        metrics.emitted = {stream_id: count for stream_id, count in self.emitted.items() if count}
        if self._outbox.transferred:
            names = {stream.index: stream_id for stream_id, stream in self._streams.items()}
            metrics.transferred = {names[index]: count for index, count in self._outbox.transferred.items()}

    def _tell_hooks(self, row: list[Any], stream_id: str, receivers: list[int]) -> None:
        info = EmitInfo(tuple(map(own_copy, row)), stream_id, self._task_id, tuple(receivers), self._attempt)
        for hook in self._hooks:
            hook.emit(info)
