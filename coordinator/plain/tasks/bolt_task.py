"""Runs the bolt of one task of a plain topology: messages in, messages out.

Only this module calls the bolts of plain topologies. Their exceptions become failures that name the task.

Source: backtype.storm.daemon.executor (bolts); backtype.storm.topology.BasicBoltExecutor.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from random import Random
from typing import Any

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.context import install_hooks
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.streams.plain_tuple import TICK_ORIGIN, PlainTuple, TupleStatus
from coordinated_bolt.streams.tuples import TupleOrigin, shortened
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import unread_answer
from coordinated_bolt.watching.task_observer import HookObserver, Meter
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.tasks.message_packer import MessagePacker
from coordinator.plain.tasks.messages import Message, MessageKind, TupleStretch
from coordinator.plain.tasks.output_collector import AnchoringCollector, TreeOutputCollector
from coordinator.plain.tasks.user_calls import UserCalls
from state.errors import FailedException, ProtocolError

_OPEN, _ACKED = TupleStatus.OPEN, TupleStatus.ACKED


class BoltTask:
    """One bolt task: call `start` once, then `receive` for each message, one at a time, and `close`.

    Each method returns a `Failure` if user code raised an exception that ends the run.

    Args:
        wiring: the task; its spec is a rich or a basic bolt.
        outbox: takes what the task sends.
        random: not shared with other tasks; draws edges and choices.
        meter: meter of the component.

    Attributes:
        bolt: the live bolt.
        collector: emits for the bolt.
    """

    def __init__(self, wiring: TaskWiring, outbox: MessagePacker, random: Random, meter: Meter | None = None) -> None:
        self._wiring = wiring
        self._user = UserCalls(wiring)
        meter = meter or Meter()
        self._clock, self._metrics = meter.clock, meter.metrics
        self._context = wiring.context()
        self._watched = HookObserver(meter.observer, self._context)
        self._origins: dict[tuple[int, int], TupleOrigin] = {}
        self._outbox = outbox
        self.collector = TreeOutputCollector(wiring, outbox, random, self._watched, meter)
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
            The failure if the bolt raised, except for a `FailedException` on a tuple that it has not acked: that fails
            the tuple.

        Raises:
            ProtocolError: a bolt task must not receive messages of this kind.
        """
        if message.kind is MessageKind.TUPLE:
            stream_index, values, roots = message.payload
            return self._execute(self._origin(message.sender, stream_index), [values], [roots])
        if message.kind is MessageKind.TICK:
            return self._execute(TICK_ORIGIN, [list(message.payload)], [{}])
        raise ProtocolError(f"bolt task {self._wiring.task_id} received an unexpected {message}")

    def receive_all(self, stretch: TupleStretch) -> Failure | None:
        """Lets the bolt execute many tuples, up to the first failure; the same as `receive` for each."""
        return self._execute(self._origin(stretch.sender, stretch.stream_index), stretch.rows, stretch.trees)

    def close(self) -> Failure | None:
        """Lets the bolt and then all of its hooks clean up; returns the first failure."""
        return self._user.close((self.bolt.cleanup, *(hook.cleanup for hook in self._context.hooks)))

    def _execute(
        self, origin: TupleOrigin, rows: Iterable[list[Any]], trees: Iterable[dict[int, int]]
    ) -> Failure | None:
        """Lets the bolt execute tuples up to the first failure, and acks those of a basic bolt."""
        execute: Any = self.bolt.execute
        is_basic, anchoring, clock, watchers = self._is_basic, self._anchoring, self._clock, self._watched.watchers
        ack, executed, acked, failure = self._outbox.ack, 0, 0, None
        is_timed, began_ns = not is_basic or watchers, clock()
        for values, roots in zip(rows, trees, strict=True):
            tup = PlainTuple(values, origin, roots)
            tup.received_ns = clock() if is_timed else began_ns
            try:
                if is_basic:
                    anchoring.anchor = tup
                    answer = execute(tup, anchoring)
                else:
                    answer = execute(tup)
                if answer is not None:
                    raise unread_answer(execute, answer)
            except BaseException as error:
                if is_interruption(error):
                    raise
                failure = self._raised(error, tup)
                if failure is not None:
                    break
            executed += 1
            if is_basic and tup.status is _OPEN:
                tup.status = _ACKED
                acked += 1
                for root, edge in roots.items():
                    ack(root, edge ^ tup.ack_value)
            failure = self._user.call(self._tell, tup) if watchers else None
            if failure is not None:
                break
        self._count(origin.name, executed, acked, clock() - began_ns)
        return failure

    def _count(self, stream: str, executed: int, acked: int, duration_ns: int) -> None:
        if executed:
            self._metrics.work.add_stretch(stream, executed, duration_ns)
        if acked:
            self._metrics.add_acked(stream, acked, duration_ns * acked // executed)

    def _raised(self, error: BaseException, tup: PlainTuple) -> Failure | None:
        """Fails a tuple if its bolt raised a `FailedException` before acking it; any other error ends the run."""
        if not isinstance(error, FailedException) or tup.status is _ACKED:  # too late to fail it
            return self._user.failure(error, shortened(tup))
        return self._user.call(self.collector.fail, tup) if tup.status is _OPEN else None

    def _tell(self, tup: PlainTuple) -> None:
        """Notifies watchers of an executed tuple, and of its ack if we have acked it."""
        latency_ns = self._clock() - tup.received_ns
        if self._is_basic and tup.status is _ACKED:
            self._watched.acked(tup, latency_ns)
        self._watched.executed(tup, latency_ns)

    def _origin(self, upstream_task: int, stream_index: int) -> TupleOrigin:
        origin = self._origins.get((upstream_task, stream_index))
        if origin is None:
            origin = self._origins[upstream_task, stream_index] = self._wiring.origin(None, upstream_task, stream_index)
        return origin
