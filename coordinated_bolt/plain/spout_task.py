"""Runs the spout of one task of a plain topology, and keeps its messages under way.

Source: backtype.storm.daemon.executor (spouts). Differs from Storm: a message without a tree is acked after the
call that emitted it, not during that call.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.spouts import IAckValueSpout, IFailValueSpout, ISpout
from coordinated_bolt.components.task_hook import install_hooks
from coordinated_bolt.plain.messages import Message, MessageKind
from coordinated_bolt.plain.outboxes import RootOutbox
from coordinated_bolt.plain.output_collector import TreeSpoutOutputCollector
from coordinated_bolt.plain.user_calls import UserCalls, end_on
from coordinated_bolt.streams.plain_tuple import PendingMessage
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import call
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.errors import ProtocolError


class SpoutTask:
    """One spout task: call `start` and `activate` first, `close` last, and one method at a time.

    Every method that calls the spout returns the `Failure` of what it raised, if it did: the run ends with that.

    Args:
        wiring: the task; its spec is an `ISpout`.
        outbox: takes what the task sends.
        random: not shared with other tasks; draws roots, edges and choices.
        max_spout_pending: `next_tuple` is not called while this many messages are under way; None means no bound.
        observer: notified of each step of the task.
        clock: in nanoseconds, for the metrics.

    Attributes:
        spout: the live spout.
        collector: emits for the spout.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        outbox: RootOutbox,
        random: Random,
        *,
        max_spout_pending: int | None = None,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        self._user = UserCalls(wiring)
        self._context = wiring.context()
        self._observer = HookObserver(observer, self._context)
        self._max_spout_pending = max_spout_pending
        self._clock = clock
        self.collector = TreeSpoutOutputCollector(wiring, outbox, random, self._observer, clock)
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

    def is_ready(self) -> bool:
        """Returns whether `next_tuple` may be called now."""
        limit = self._max_spout_pending
        return self._is_active and (limit is None or len(self.collector.pending) < limit)

    def next_tuple(self) -> Failure | None:
        """Asks the spout for a tuple; if `emitted_count` has grown, it is worth asking again."""
        try:
            call(self.spout.next_tuple)
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._user.failure(error)
        return self._ack_done() if self.collector.done else None

    def receive(self, message: Message) -> Failure | None:
        """Handles an ACKED, FAILED or RESET_TIMEOUT; ignores it if the message has already timed out.

        Raises:
            ProtocolError: spout tasks must not receive messages of this kind.
        """
        pending = self.collector.pending
        match message.kind:
            case MessageKind.ACKED | MessageKind.FAILED:
                return self.end(message.root, is_acked=message.kind is MessageKind.ACKED)
            case MessageKind.RESET_TIMEOUT:
                kept = pending.get(message.root)
                if kept is not None:
                    pending.put(message.root, kept)
            case _:
                raise ProtocolError(f"spout task {self._wiring.task_id} received an unexpected {message}")
        return self._ack_done()

    def end(self, root: int, *, is_acked: bool) -> Failure | None:
        """Tells the spout that the message of a tree was acked or has failed, unless it has already timed out."""
        ended, failure = self.collector.pending.pop(root), None
        if ended is not None:
            failure = self._ack(ended) if is_acked else self._fail(ended)
        return failure or (self._ack_done() if self.collector.done else None)

    def tick(self) -> Failure | None:
        """Fails the messages emitted before the last tick; called once per message timeout, never if disabled."""
        for overdue in self.collector.pending.rotate().values():
            failure = self._fail(overdue)
            if failure is not None:
                return failure
        return self._ack_done()

    def close(self) -> Failure | None:
        """Closes the spout, and then lets all of its hooks clean up; returns the first failure."""
        return self._user.close((self.spout.close, *(hook.cleanup for hook in self._context.hooks)))

    def _ack(self, message: PendingMessage) -> Failure | None:
        try:
            if self._is_told_values:
                self.spout.ack(message.message_id, message.values)  # type: ignore[call-arg]
            else:
                self.spout.ack(message.message_id)
            watched = self._observer
            latency_ns = self._clock() - message.emitted_ns
            (watched if watched.hooks else watched.observer).message_acked(message, latency_ns)
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._user.failure(error)
        return None

    def _fail(self, message: PendingMessage) -> Failure | None:
        return self._user.call(self._tell_failed, message)

    def _tell_failed(self, message: PendingMessage) -> None:
        if isinstance(self.spout, IFailValueSpout):
            self.spout.fail(message.message_id, message.values)
        else:
            self.spout.fail(message.message_id)
        self._observer.message_failed(message, self._clock() - message.emitted_ns)

    def _ack_done(self) -> Failure | None:
        """Acks messages without a tree. Bounded: what these acks emit waits for the next call."""
        if not self.collector.done:
            return None
        for _ in range(len(self.collector.done)):
            failure = self._ack(self.collector.done.popleft())
            if failure is not None:
                return failure
        return None


def emitted_now(spout: SpoutTask) -> int:
    """Asks a spout for a tuple, if it may emit; returns how many it emitted.

    Raises:
        UserCodeError: the spout raised.
    """
    if not spout.is_ready():
        return 0
    collector = spout.collector
    before = collector.emitted_count
    failure = spout.next_tuple()
    if failure is not None:
        end_on(failure)
    return collector.emitted_count - before
