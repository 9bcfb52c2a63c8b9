"""Runs the spout of one task of a plain topology, and keeps track of its pending messages.

Source: backtype.storm.daemon.executor (spouts). Differs from Storm: a message without a tree is acked after the
call that emitted it, not during that call.
"""

from __future__ import annotations

import pickle
from collections.abc import Container, Iterable
from random import Random

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.context import install_hooks
from coordinated_bolt.components.spouts import IAckValueSpout, IFailValueSpout, ISpout
from coordinated_bolt.streams.plain_tuple import Pending, PendingMessage
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import unread_answer
from coordinated_bolt.watching.task_observer import HookObserver, Meter
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.tasks.message_packer import MessagePacker
from coordinator.plain.tasks.messages import Message, MessageKind
from coordinator.plain.tasks.spout_collector import TreeSpoutOutputCollector
from coordinator.plain.tasks.user_calls import UserCalls, end_on
from state.errors import ProtocolError
from state.fault_points import reached


class SpoutTask:
    """One spout task: call `start` and `activate` first, `close` last, and one method at a time.

    An exception of the spout ends the run: `ask` raises it, and the other methods return it as a `Failure`.

    Args:
        wiring: the task; its spec is an `ISpout`.
        outbox: takes what the task sends.
        random: not shared with other tasks; draws roots, edges and choices.
        max_spout_pending: `next_tuple` is not called while this many messages are under way; None means no bound.
        meter: meter of the component.

    Attributes:
        spout: the live spout.
        collector: emits for the spout.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        outbox: MessagePacker,
        random: Random,
        *,
        max_spout_pending: int | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._wiring = wiring
        self._user = UserCalls(wiring)
        self._context = wiring.context()
        meter = meter or Meter()
        self._watched = HookObserver(meter.observer, self._context)
        self._clock, self._metrics = meter.clock, meter.metrics
        self._pending_max = float("inf") if max_spout_pending is None else max_spout_pending
        self.collector = TreeSpoutOutputCollector(wiring, outbox, random, self._watched, meter)
        self._ageing: set[int] = set()  # the roots that were pending at the last tick
        self._is_active = False
        self.spout: ISpout = pickle.loads(wiring.spec)
        self._is_told_values = isinstance(self.spout, IAckValueSpout)

    @property
    def pending_count(self) -> int:
        """Messages under way."""
        return len(self.collector.pending)

    @property
    def emitted_count(self) -> int:
        """Number of tuples that the spout has emitted so far."""
        return self.collector.emitted_count

    def start(self) -> Failure | None:
        """Prepares the topology's hooks and opens the spout."""
        conf, context = self._context.conf, self._context
        return (
            self._user.call(install_hooks, context, self._wiring.hook_specs)
            or self._user.call(self.spout.open, conf, context, self.collector)
            or self._ack_done()
        )

    def activate(self) -> Failure | None:
        """Activates the spout; from then on `next_tuple` may be called."""
        if self._is_active:
            return None
        self._is_active = True
        return self._user.call(self.spout.activate) or self._ack_done()

    def deactivate(self) -> Failure | None:
        """Deactivates the spout, so that `next_tuple` is no longer called; acks and failures still arrive."""
        if not self._is_active:
            return None
        self._is_active = False
        return self._user.call(self.spout.deactivate) or self._ack_done()

    def ask(self) -> int:
        """Asks the spout for a tuple, if it may emit; returns how many tuples it emitted.

        Raises:
            UserCodeError: the spout raised.
        """
        collector = self.collector
        if not self._is_active or len(collector.pending) >= self._pending_max:
            return 0
        before = collector.emitted_count
        try:
            if (answer := self.spout.next_tuple()) is not None:
                raise unread_answer(self.spout.next_tuple, answer)
        except BaseException as error:
            if is_interruption(error):
                raise
            end_on(self._user.failure(error))
        if collector.done:
            end_on(self._ack_done())
        return collector.emitted_count - before

    def receive(self, message: Message) -> Failure | None:
        """Handles an ACKED, FAILED or RESET_TIMEOUT; ignores it if the message has already timed out.

        Raises:
            ProtocolError: spout tasks must not receive messages of this kind.
        """
        match message.kind:
            case MessageKind.ACKED | MessageKind.FAILED:
                root = message.root
                return self.end((root,), acked=(root,) if message.kind is MessageKind.ACKED else ())
            case MessageKind.RESET_TIMEOUT:
                self._ageing.discard(message.root)
                return self._ack_done()
            case _:
                raise ProtocolError(f"spout task {self._wiring.task_id} received an unexpected {message}")

    def end(self, roots: Iterable[int], *, acked: Container[int]) -> Failure | None:
        """Calls the spout's `ack` or `fail` for each message, in order, except for messages that have timed out."""
        pop, done, now_ns = self.collector.pending.pop, self.collector.done, self._clock()
        for root in roots:
            message, failure = pop(root, None), None
            if message is not None:
                failure = self._ack(message, now_ns) if root in acked else self._fail(message)
            if failure is None and done:
                failure = self._ack_done()
            if failure is not None:
                return failure
            reached("plain_message.notified")
        return None

    def tick(self) -> Failure | None:
        """Fails the messages emitted before the last tick; called once per message timeout T, never if disabled.

        So a message fails between T and 2T after it was emitted.
        """
        pending = self.collector.pending
        overdue = [root for root in pending if root in self._ageing]
        self._ageing = pending.keys() - overdue
        return self.end(overdue, acked=())

    def close(self) -> Failure | None:
        """Closes the spout, and then lets all of its hooks clean up; returns the first failure."""
        return self._user.close((self.spout.close, *(hook.cleanup for hook in self._context.hooks)))

    def _ack(self, message: Pending, now_ns: int) -> Failure | None:
        message_id, values, stream_id, emitted_ns = message
        try:
            if self._is_told_values:
                self.spout.ack(message_id, values)  # type: ignore[call-arg]
            else:
                self.spout.ack(message_id)
            self._metrics.add_acked(stream_id, 1, now_ns - emitted_ns)
            if self._watched.watchers:
                self._watched.message_acked(PendingMessage(*message), now_ns - emitted_ns)
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._user.failure(error)
        return None

    def _fail(self, message: Pending) -> Failure | None:
        return self._user.call(self._tell_failed, PendingMessage(*message))

    def _tell_failed(self, message: PendingMessage) -> None:
        if isinstance(self.spout, IFailValueSpout):
            self.spout.fail(message.message_id, message.values)
        else:
            self.spout.fail(message.message_id)
        self._metrics.add_failed(message.stream_id)
        self._watched.message_failed(message, self._clock() - message.emitted_ns)

    def _ack_done(self) -> Failure | None:
        """Acks messages without a tree. Bounded: messages that these acks emit wait for the next call."""
        done = self.collector.done
        for _ in range(len(done)):
            failure = self._ack(done.popleft(), self._clock())
            if failure is not None:
                return failure
        return None
