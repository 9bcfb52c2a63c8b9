"""The one way to watch a task: it notifies its observer, observers notify each other, and the last one notifies hooks.

Recorders of tests, metrics and counters are observers. `ITaskHook` is for users only; txbatch has no hooks of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.task_hook import AckInfo, EmitInfo, ExecuteInfo, FailInfo
from coordinated_bolt.streams.plain_tuple import PendingMessage, PlainTuple
from coordinated_bolt.streams.tuples import Tuple
from coordinated_bolt.watching.metrics import ComponentMetrics, TaskMetrics, no_clock
from state.attempt import TransactionAttempt
from state.values.own_copy import own_copy


class TaskObserver:
    """Notified after each step of one task, in order; this base class does nothing.

    Called by tasks of every kind, where the task runs, on its thread. An exception counts as raised by the bolt
    or spout.
    """

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        """A tuple was emitted; called once, however many tasks receive it. Keep copies of the values, not the values.

        `attempt` is the attempt, or the batch of a sub-topology, that the tuple belongs to.
        """

    def executed(self, tup: Tuple, latency_ns: int) -> None:
        """A bolt has executed a tuple; the latency is the duration of its `execute`."""

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has acked a tuple; the latency counts from when the bolt received it."""

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        """A bolt has failed a tuple; the latency counts from when the bolt received it."""

    def batch_ended(self, batch: TransactionAttempt, failure: Failure | None, metrics: TaskMetrics) -> None:
        """A task of a sub-topology has finished or failed a batch.

        The tuples that its bolt emitted and executed, which `metrics` counts, were reported one by one; the tuples of
        a batch are acked or failed together.
        """

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was notified that a message is processed; the latency counts from the message's emit."""

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        """A spout was notified that a message failed or timed out; the latency counts from the message's emit."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The metrics, clock and observer of tasks of a plain topology.

    Attributes:
        metrics: their component's metrics; the tasks count into it.
        clock: nanoseconds.
        observer: notified of each step of the tasks; may be None.
    """

    metrics: ComponentMetrics = field(default_factory=ComponentMetrics)
    clock: Callable[[], int] = no_clock
    observer: TaskObserver | None = None


class HookObserver(TaskObserver):
    """Notifies the engine's observer first, and then the hooks of a context, including any added later.

    Hooks are not notified of the end of a batch; engines notify their own observer.

    Args:
        observer: the engine's, notified first; None if the engine has none.
        context: the task's context; its hooks are notified second.

    Attributes:
        observer: the engine's; while `hooks` is empty, a task with many notifications may notify only this one.
        hooks: the hooks of the context.
        watchers: empty while nobody has to be notified of emits or executions; a task then pays one truth test.
    """

    def __init__(self, observer: TaskObserver | None, context: TopologyContext) -> None:
        self.observer = observer or TaskObserver()
        self.hooks = context.hooks
        self._task_id = context.task_id
        self.watchers: Sequence[object] = self.hooks if observer is None else (observer,)

    def emitted(
        self, stream_id: str, values: list[Any], receivers: list[int], attempt: TransactionAttempt | None = None
    ) -> None:
        self.observer.emitted(stream_id, values, receivers, attempt)
        if self.hooks:
            info = EmitInfo(tuple(map(own_copy, values)), stream_id, self._task_id, tuple(receivers), attempt)
            for hook in self.hooks:
                hook.emit(info)

    def executed(self, tup: Tuple, latency_ns: int) -> None:
        self.observer.executed(tup, latency_ns)
        if self.hooks:
            info = ExecuteInfo(tup, latency_ns)
            for hook in self.hooks:
                hook.execute(info)

    def acked(self, tup: PlainTuple, latency_ns: int) -> None:
        self.observer.acked(tup, latency_ns)
        for hook in self.hooks:
            hook.bolt_ack(AckInfo(tup, self._task_id, latency_ns))

    def failed(self, tup: PlainTuple, latency_ns: int) -> None:
        self.observer.failed(tup, latency_ns)
        for hook in self.hooks:
            hook.bolt_fail(FailInfo(tup, self._task_id, latency_ns))

    def message_acked(self, message: PendingMessage, latency_ns: int) -> None:
        self.observer.message_acked(message, latency_ns)
        for hook in self.hooks:
            hook.spout_ack(AckInfo(message.message_id, self._task_id, latency_ns))

    def message_failed(self, message: PendingMessage, latency_ns: int) -> None:
        self.observer.message_failed(message, latency_ns)
        for hook in self.hooks:
            hook.spout_fail(FailInfo(message.message_id, self._task_id, latency_ns))
