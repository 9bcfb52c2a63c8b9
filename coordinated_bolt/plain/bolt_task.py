"""Runs the bolt of one task of a plain topology: messages in, messages out.

Only this module calls the bolts of plain topologies. What they raise becomes a failure that names the task.

Source: backtype.storm.daemon.executor (bolts); backtype.storm.topology.BasicBoltExecutor.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.task_hook import install_hooks
from coordinated_bolt.plain.messages import Message, MessageKind, TupleStretch
from coordinated_bolt.plain.outboxes import TreeOutbox
from coordinated_bolt.plain.output_collector import AnchoringCollector, TreeOutputCollector
from coordinated_bolt.plain.user_calls import UserCalls
from coordinated_bolt.streams.plain_tuple import TICK_ORIGIN, PlainTuple, TupleStatus
from coordinated_bolt.streams.tuples import TupleOrigin, shortened
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import call
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.errors import FailedException, ProtocolError

_OPEN = TupleStatus.OPEN


class BoltTask:
    """One bolt task: call `start` once, then `receive` for each message, one at a time, and `close`.

    Each returns the `Failure` of what user code raised, if it did: the run ends with that.

    Args:
        wiring: the task; its spec is a rich or a basic bolt.
        outbox: takes what the task sends.
        random: not shared with other tasks; draws edges and choices.
        observer: notified of each step of the task.
        clock: in nanoseconds, for the metrics.

    Attributes:
        bolt: the live bolt.
        collector: emits for the bolt.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        outbox: TreeOutbox,
        random: Random,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        self._user = UserCalls(wiring)
        self._clock = clock
        self._context = wiring.context()
        self._observer = HookObserver(observer, self._context)
        self._origins: dict[tuple[int, int], TupleOrigin] = {}
        self.collector = TreeOutputCollector(wiring, outbox, random, self._observer, clock)
        self._anchoring = AnchoringCollector(self.collector)
        self.bolt: IRichBolt | IBasicBolt = pickle.loads(wiring.spec)
        self._is_basic = isinstance(self.bolt, IBasicBolt)

    def start(self) -> Failure | None:
        """Prepares the topology's hooks and the bolt."""
        context = self._context
        collector = () if self._is_basic else (self.collector,)
        return self._user.call(install_hooks, context, self._wiring.hook_specs) or self._user.call(
            self.bolt.prepare, context.conf, context, *collector
        )

    def receive(self, message: Message) -> Failure | None:
        """Lets the bolt execute a tuple or a tick.

        Returns:
            What it raised, but for a `FailedException` on a tuple it has not acked: that fails the tuple.

        Raises:
            ProtocolError: a bolt task must not receive messages of this kind.
        """
        if message.kind is MessageKind.TUPLE:
            stream_index, values, roots = message.payload
            return self._execute(PlainTuple(values, self._origin(message.sender, stream_index), roots))
        if message.kind is MessageKind.TICK:
            return self._execute(PlainTuple(list(message.payload), TICK_ORIGIN, {}))
        raise ProtocolError(f"bolt task {self._wiring.task_id} received an unexpected {message}")

    def receive_all(self, stretch: TupleStretch) -> Failure | None:
        """Lets the bolt execute many tuples, up to the first failure; the same as `receive` of each."""
        origin, execute = self._origin(stretch.sender, stretch.stream_index), self._execute
        for values, roots in zip(stretch.rows, stretch.trees, strict=True):
            failure = execute(PlainTuple(values, origin, roots))
            if failure is not None:
                return failure
        return None

    def close(self) -> Failure | None:
        """Lets the bolt and then all of its hooks clean up; returns the first failure."""
        return self._user.close((self.bolt.cleanup, *(hook.cleanup for hook in self._context.hooks)))

    def _execute(self, tup: PlainTuple) -> Failure | None:
        tup.received_ns = self._clock()
        bolt: Any = self.bolt
        try:
            if self._is_basic:
                self._anchoring.anchor = tup
                call(bolt.execute, tup, self._anchoring)
            else:
                call(bolt.execute, tup)
        except FailedException as error:
            if tup.status is TupleStatus.ACKED:  # too late to fail it
                return self._user.failure(error, shortened(tup))
            failure = self._user.call(self.collector.fail, tup) if tup.status is _OPEN else None
            if failure is not None:
                return failure
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._user.failure(error, shortened(tup))
        try:  # hooks, too, are user code
            if self._is_basic and tup.status is _OPEN:
                self.collector.ack(tup)
            watched = self._observer
            (watched if watched.hooks else watched.observer).executed(tup, self._clock() - tup.received_ns)
        except BaseException as error:
            if is_interruption(error):
                raise
            return self._user.failure(error)
        return None

    def _origin(self, upstream_task: int, stream_index: int) -> TupleOrigin:
        origin = self._origins.get((upstream_task, stream_index))
        if origin is None:
            origin = self._origins[upstream_task, stream_index] = self._wiring.origin(None, upstream_task, stream_index)
        return origin
