"""Tells hooks what a task of a plain topology does."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.task_hook import AckInfo, EmitInfo, ExecuteInfo, FailInfo
from coordinated_bolt.streams.pending_message import PendingMessage
from coordinated_bolt.streams.plain_tuple import PlainTuple
from coordinated_bolt.watching.task_observer import TaskObserver
from state.own_copy import own_copy


class HookObserver(TaskObserver):
    """Notifies another observer first, and then the hooks of a context, including any added later.

    Args:
        observer: notified first.
        context: of the task; its hooks are notified second.
    """

    def __init__(self, observer: TaskObserver, context: TopologyContext) -> None:
        self._observer = observer
        self._hooks = context.hooks
        self._task_id = context.task_id

    def emitted(self, stream_id: str, values: list[Any], receivers: list[int]) -> None:
        self._observer.emitted(stream_id, values, receivers)
        if self._hooks:
            info = EmitInfo(tuple(map(own_copy, values)), stream_id, self._task_id, tuple(receivers))
            for hook in self._hooks:
                hook.emit(info)

    def executed(self, tup: PlainTuple, latency_ns: int) -> None:
        self._observer.executed(tup, latency_ns)
        for hook in self._hooks:
            hook.execute(ExecuteInfo(tup, latency_ns))

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        self._observer.acked(tup, latency_ns)
        for hook in self._hooks:
            hook.bolt_ack(AckInfo(tup, self._task_id, latency_ns))

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        self._observer.failed(tup, latency_ns)
        for hook in self._hooks:
            hook.bolt_fail(FailInfo(tup, self._task_id, latency_ns))

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        self._observer.message_acked(message, latency_ns)
        for hook in self._hooks:
            hook.spout_ack(AckInfo(message.message_id, self._task_id, latency_ns))

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        self._observer.message_failed(message, latency_ns)
        for hook in self._hooks:
            hook.spout_fail(FailInfo(message.message_id, self._task_id, latency_ns))
