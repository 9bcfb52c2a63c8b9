"""Runs the bolt of one task of a plain topology: messages in, messages out.

User code is called here and nowhere else, so this is where its exceptions become errors that say where
they come from.

Source: backtype.storm.daemon.executor (bolts); backtype.storm.topology.BasicBoltExecutor.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from coordinated_bolt.closing import close_all
from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.rich_bolts import IRichBolt
from coordinated_bolt.components.task_hook import install_hooks
from coordinated_bolt.streams.plain_tuple import TICK_ORIGIN, PlainTuple, TupleStatus
from coordinated_bolt.streams.tuples import TupleOrigin, shortened
from coordinated_bolt.transport.messages import Message, MessageKind, SendMessage
from coordinated_bolt.trees.output_collector import AnchoringCollector, TreeOutputCollector
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinated_bolt.watching.hook_observer import HookObserver
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.watching.task_observer import TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.errors import FailedException, ProtocolError, UserCodeError


class BoltTask:
    """One bolt task: call `start` once, then `receive` for each message, one at a time, and `close`.

    Args:
        wiring: the task; its spec is a rich or a basic bolt.
        send: takes the messages for other tasks. It must not deliver them before it returns.
        random: of this task alone; draws edges and choices.
        observer: is told what the task does.
        clock: nanoseconds, for the metrics.

    Attributes:
        bolt: the live bolt.
        collector: what it emits with.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        send: SendMessage,
        random: Random,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        self._clock = clock
        self._context = wiring.context()
        self._observer = HookObserver(observer, self._context)
        self._origins: dict[tuple[int, int], TupleOrigin] = {}
        self.collector = TreeOutputCollector(wiring, send, random, self._observer, clock)
        self._anchoring = AnchoringCollector(self.collector)
        self.bolt: IRichBolt | IBasicBolt = pickle.loads(wiring.spec)

    def start(self) -> None:
        """Has the topology's hooks and the bolt prepared.

        Raises:
            UserCodeError: it raised.
        """
        self._call(self._prepare)

    def receive(self, message: Message) -> None:
        """Has the bolt execute a tuple or a tick.

        Raises:
            UserCodeError: it raised anything but `FailedException`, or that on a tuple it had acked.
            ProtocolError: a bolt task does not receive such messages.
        """
        if message.kind is MessageKind.TUPLE:
            stream_index, values, roots = message.payload
            self._execute(PlainTuple(values, self._origin(message.source, stream_index), roots))
        elif message.kind is MessageKind.TICK:
            self._execute(PlainTuple(list(message.payload), TICK_ORIGIN, {}))
        else:
            raise ProtocolError(f"bolt task {self._wiring.task_id} received {message}")

    def close(self) -> None:
        """Lets the bolt clean up, and then its hooks, all of them.

        Raises:
            UserCodeError: what the first of them raised.
        """
        cleanups = (self.bolt.cleanup, *(hook.cleanup for hook in self._context.hooks))
        close_all(partial(self._call, cleanup) for cleanup in cleanups)

    def _prepare(self) -> None:
        install_hooks(self._context, self._wiring.hook_specs)
        if isinstance(self.bolt, IBasicBolt):
            self.bolt.prepare(self._context.conf, self._context)
        else:
            self.bolt.prepare(self._context.conf, self._context, self.collector)

    def _execute(self, tup: PlainTuple) -> None:
        tup.received_ns = self._clock()
        try:
            if isinstance(self.bolt, IBasicBolt):
                self._anchoring.anchor = tup
                self.bolt.execute(tup, self._anchoring)
            else:
                self.bolt.execute(tup)
        except FailedException as error:
            if tup.status is TupleStatus.ACKED:  # too late to be failed
                raise self._user_error(error, tup) from error
            if tup.status is TupleStatus.OPEN:
                self._call(self.collector.fail, tup)
        except BaseException as error:
            if is_interruption(error):
                raise
            raise self._user_error(error, tup) from error
        else:
            if isinstance(self.bolt, IBasicBolt):
                self._call(self.collector.ack, tup)
        self._call(self._observer.executed, tup, self._clock() - tup.received_ns)

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except BaseException as error:
            if is_interruption(error):
                raise
            raise self._user_error(error) from error

    def _user_error(self, error: BaseException, tup: PlainTuple | None = None) -> UserCodeError:
        text = "" if tup is None else shortened(tup)
        return UserCodeError(self._wiring.component_id, self._wiring.task_index, "", text, user_traceback(error))

    def _origin(self, source_task: int, stream_index: int) -> TupleOrigin:
        origin = self._origins.get((source_task, stream_index))
        if origin is None:
            origin = self._origins[source_task, stream_index] = self._wiring.origin(None, source_task, stream_index)
        return origin
