"""Tells hooks what a task of a plain topology does."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.context import TopologyContext
from coordinated_bolt.plain_tuple import PlainTuple
from coordinated_bolt.task_hook import AckInfo, EmitInfo, ExecuteInfo, FailInfo
from coordinated_bolt.task_observer import TaskObserver


class HookObserver(TaskObserver):
    """Tells another observer first, and then the hooks of a context, also those that are added later.

    Latencies are 0: tasks of plain topologies are given no clock.

    Args:
        observer: told first.
        context: of the task; its hooks are told.
    """

    def __init__(self, observer: TaskObserver, context: TopologyContext) -> None:
        self._observer = observer
        self._hooks = context.hooks
        self._task_id = context.task_id

    def emitted(self, stream_id: str, values: list[Any], receivers: list[int]) -> None:
        self._observer.emitted(stream_id, values, receivers)
        if self._hooks:
            info = EmitInfo(tuple(values), stream_id, self._task_id, tuple(receivers))
            for hook in self._hooks:
                hook.emit(info)

    def executed(self, tup: PlainTuple) -> None:
        self._observer.executed(tup)
        for hook in self._hooks:
            hook.execute(ExecuteInfo(tup, 0))

    def acked(self, tup: PlainTuple) -> None:
        self._observer.acked(tup)
        for hook in self._hooks:
            hook.bolt_ack(AckInfo(tup, self._task_id, 0))

    def failed(self, tup: PlainTuple) -> None:
        self._observer.failed(tup)
        for hook in self._hooks:
            hook.bolt_fail(FailInfo(tup, self._task_id, 0))

    def message_acked(self, message_id: Any) -> None:
        self._observer.message_acked(message_id)
        for hook in self._hooks:
            hook.spout_ack(AckInfo(message_id, self._task_id, 0))

    def message_failed(self, message_id: Any) -> None:
        self._observer.message_failed(message_id)
        for hook in self._hooks:
            hook.spout_fail(FailInfo(message_id, self._task_id, 0))
