"""Runs a plain topology in this process, step by step, with a clock that the test advances.

The tasks are the same objects that run on Spark; only the transport (`mailroom`) and the clock (`timers`) differ. One
seed is one schedule.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, TypeVar

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.plain_tuple import PlainTuple, TupleStatus
from coordinated_bolt.streams.tuples import Tuple
from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import SealedFrame, WaveId
from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinated_bolt.watching.task_observer import Meter
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.plain_plan import PlainPlan
from coordinator.plain.tasks.acker_task import AckerTask
from coordinator.plain.tasks.bolt_task import BoltTask
from coordinator.plain.tasks.coordinated_task import CoordinatedTask, make_task
from coordinator.plain.tasks.message_packer import MessagePacker, messages_in
from coordinator.plain.tasks.messages import Message, tick_message
from coordinator.plain.tasks.spout_task import SpoutTask
from coordinator.plain.tasks.user_calls import close_all, end_on
from coordinator.spouts.memory import FeederSpout
from coordinator.testing.cluster.mailroom import DEFAULT_RECEIVE_CAPACITY, Mailroom
from coordinator.testing.cluster.recorder import Recorder
from coordinator.testing.cluster.timers import Timers
from state.codec import digest64
from state.errors import TopologyError, TransactionError
from state.values.column_values import is_unordered

STEP_LIMIT = 1_000_000
"""Most steps that `run_until_idle` takes."""

Held = TypeVar("Held")

_ALWAYS = WaveId(1, 0)
"""The only wave here: every message is a frame that is delivered at once."""
MessageFault = Callable[[Message], Sequence[Message]]
"""Fault point ``messages.sent``: a message -> the messages that arrive instead, in this order."""


class HandBolt(BaseRichBolt):
    """Keeps its tuples; replaces the bolt of a component for which a test acks, fails and emits.

    Source: backtype.storm.testing.AckTracker and the hand-fed bolts of Storm's integration tests.
    """

    def __init__(self) -> None:
        self._received: list[PlainTuple] = []

    def execute(self, tup: Tuple) -> None:
        assert isinstance(tup, PlainTuple)
        self._received.append(tup)

    def waiting(self) -> list[PlainTuple]:
        """Returns the open tuples in the order of their arrival, and forgets acked and failed ones."""
        self._received = [tup for tup in self._received if tup.status is TupleStatus.OPEN]
        return list(self._received)


class PlainRun:
    """A run of a plain topology in one process. The constructor prepares bolts and opens spouts; `activate` begins.

    An exception of user code ends the run: the method that advanced it raises `UserCodeError`, and so does every later
    call that would advance it. After `close`, such calls raise `RuntimeError`; the results can still be read.

    Args:
        plan: plan of the topology.
        seed: seed of all random choices.
        receive_capacity: most messages in a task's receive queue.
        keeps_order: whether messages between two tasks keep their order.
        by_hand: ids of bolts whose tuples are kept for the test, see `waiting`.
        message_fault: loses, doubles, alters or replaces messages.

    Raises:
        UserCodeError: a `prepare` or `open` raised.
        TopologyError: `by_hand` names something that is not a bolt, or a bolt of a sub-topology.
    """

    def __init__(
        self,
        plan: PlainPlan,
        *,
        seed: int = 0,
        receive_capacity: int = DEFAULT_RECEIVE_CAPACITY,
        keeps_order: bool = True,
        by_hand: Sequence[str] = (),
        message_fault: MessageFault | None = None,
    ) -> None:
        if isinstance(by_hand, str):
            raise TopologyError(f"by_hand takes a list of component ids, not {by_hand!r}; write [{by_hand!r}]")
        self._seed = seed
        self._mailroom = Mailroom[Message](self._random_of("mailroom"), receive_capacity, keeps_order=keeps_order)
        self._message_fault = message_fault
        self._timers = Timers()
        self._recorders = {wiring.component_id: Recorder() for wiring in plan.wirings.values()}
        self._meters = {
            component: Meter(clock=self._now_ns, observer=recorder) for component, recorder in self._recorders.items()
        }
        self._error: TransactionError | None = None
        self._is_closed = False
        self._started: list[BoltTask | CoordinatedTask | SpoutTask] = []
        self._fed = Counter[str]()
        self._ackers = [AckerTask(task, self._send) for task in plan.acker_tasks]
        self._spouts: dict[str, list[SpoutTask]] = {}
        self._bolts: dict[str, list[BoltTask | CoordinatedTask]] = {}
        for task, acker in zip(plan.acker_tasks, self._ackers, strict=True):
            self._mailroom.attach(task, acker.receive)
        for task, wiring in plan.wirings.items():
            if task in plan.spout_tasks:
                self._add_spout(wiring, plan.max_spout_pending)
            else:
                self._add_bolt(wiring, by_hand=wiring.component_id in by_hand)
        for component_id in by_hand:
            _of(self._bolts, component_id, "bolt")
        for task, period_s in plan.tick_periods_s.items():
            self._timers.every(period_s, partial(self._mailroom.send, tick_message(DRIVER, task, period_s)))
        if plan.message_timeout_s is not None:
            self._timers.every(plan.message_timeout_s, self._time_out)
        try:
            tasks: list[BoltTask | CoordinatedTask | SpoutTask] = [*_all(self._bolts), *_all(self._spouts)]
            for component in tasks:
                self._started.append(component)  # closed even if its start fails
                end_on(component.start())
        except TransactionError:
            with suppress(TransactionError):  # the first error is the one to report
                self.close()
            raise

    @property
    def now_s(self) -> float:
        """The current time of this run, in seconds from its start."""
        return self._timers.now_s

    def activate(self) -> None:
        """Allows the spouts to emit."""
        with self._ending_the_run():
            for spout in _all(self._spouts):
                end_on(spout.activate())
            self._mailroom.rouse()

    def deactivate(self) -> None:
        """Stops the spouts from emitting; messages in flight are still processed."""
        with self._ending_the_run():
            for spout in _all(self._spouts):
                end_on(spout.deactivate())

    def tick(self) -> bool:
        """Delivers one message or asks one spout for a tuple.

        Returns:
            False if there was nothing to do: no message was in flight, and no active spout had a tuple. The next tick
            asks the spouts again.
        """
        with self._ending_the_run():
            has_worked = self._mailroom.step()
            if not has_worked:
                self._mailroom.rouse()
            return has_worked

    def run_until_idle(self) -> int:
        """Ticks until there is nothing to do; returns the number of steps.

        Raises:
            RuntimeError: the run is not idle after a million steps.
        """
        for steps in range(STEP_LIMIT):
            if not self.tick():
                return steps
        raise RuntimeError(
            f"the run is not idle after {STEP_LIMIT:,} steps: a spout that always has another tuple keeps it busy; "
            "call tick instead, or deactivate the run"
        )

    def advance_time(self, seconds: float) -> None:
        """Advances the clock: messages time out and tick tuples are sent, but nothing is delivered."""
        with self._ending_the_run():
            self._timers.advance(seconds)
            self._mailroom.rouse()

    def close(self) -> None:
        """Closes all spouts and bolts, even if one of them raises; a second call does nothing.

        Raises:
            UserCodeError: a spout or bolt raised while it was closed; the first such error.
        """
        if self._is_closed:
            return
        self._is_closed = True
        end_on(close_all(component.close for component in reversed(self._started)))

    def feed(self, spout_id: str, values: Sequence[Any], message_id: Any = None) -> None:
        """Makes a `FeederSpout` emit values; its tasks take turns.

        Raises:
            TopologyError: the spout does not exist or is not a `FeederSpout`, or the values are not a list.
        """
        tasks = _of(self._spouts, spout_id, "spout")
        spout = tasks[self._fed[spout_id] % len(tasks)].spout
        if not isinstance(spout, FeederSpout):
            raise TopologyError(f"spout {spout_id!r} cannot be fed: it is not a FeederSpout")
        if is_unordered(values):
            raise TopologyError(f"feed takes a list of values, not {values!r}; write [{values!r}]")
        self._fed[spout_id] += 1
        spout.feed(values, message_id)
        self._mailroom.rouse()

    def emitted(self, component_id: str) -> list[tuple[str, list[Any]]]:
        """Returns (stream id, values) of every tuple that the component emitted, in order."""
        return list(_of(self._recorders, component_id, "component").emissions)

    def acked(self, spout_id: str) -> list[Any]:
        """Returns the message ids for which the spout's `ack` was called, in order."""
        return list(_of(self._recorders, spout_id, "spout").acked_ids)

    def failed(self, spout_id: str) -> list[Any]:
        """Returns the message ids for which the spout's `fail` was called, in order."""
        return list(_of(self._recorders, spout_id, "spout").failed_ids)

    def metrics(self, component_id: str) -> ComponentMetrics:
        """Returns the metrics of the component's tasks so far; times are on the run's clock."""
        return _of(self._meters, component_id, "component").metrics

    def pending_count(self, spout_id: str) -> int:
        """Returns the number of messages that the spout's tasks have in flight."""
        return sum(task.pending_count for task in _of(self._spouts, spout_id, "spout"))

    def open_batch_count(self, component_id: str) -> int:
        """Returns the number of unfinished batches in the tasks of a component of a sub-topology."""
        return sum(len(task) for task in _of(self._bolts, component_id, "bolt") if isinstance(task, CoordinatedTask))

    def batch_failures(self, component_id: str) -> list[Failure]:
        """Returns why batches failed in tasks of a component of a sub-topology, in order."""
        return list(_of(self._recorders, component_id, "component").batch_failures)

    def waiting(self, component_id: str) -> list[PlainTuple]:
        """Returns the open tuples of a component handled by hand, by task and then in the order of their arrival."""
        return [tup for _, bolt in self._hand_tasks(component_id) for tup in bolt.waiting()]

    def ack(self, tup: PlainTuple) -> None:
        """Acks a tuple of a component handled by hand."""
        self._holder(tup).collector.ack(tup)

    def fail(self, tup: PlainTuple) -> None:
        """Fails a tuple of a component handled by hand."""
        self._holder(tup).collector.fail(tup)

    def reset_timeout(self, tup: PlainTuple) -> None:
        """Restarts the timeout of a tuple of a component handled by hand."""
        self._holder(tup).collector.reset_timeout(tup)

    def emit(
        self,
        component_id: str,
        values: Sequence[Any],
        anchors: Iterable[PlainTuple] = (),
        stream_id: str = DEFAULT_STREAM,
    ) -> list[int]:
        """Emits from a component handled by hand: from the task that holds the first anchor, or from its first task.

        Returns:
            The task ids that receive the tuple.
        """
        held = list(anchors)
        task = self._holder(held[0]) if held else self._hand_tasks(component_id)[0][0]
        return task.collector.emit(values, held, stream_id)

    def _add_spout(self, wiring: TaskWiring, max_spout_pending: int) -> None:
        task = SpoutTask(
            wiring,
            self._outbox_of(wiring),
            self._random_of(str(wiring.task_id)),
            max_spout_pending=max_spout_pending,
            meter=self._meters[wiring.component_id],
        )
        self._spouts.setdefault(wiring.component_id, []).append(task)
        self._mailroom.attach(wiring.task_id, _receiver(task), wake=lambda: task.ask() > 0)

    def _add_bolt(self, wiring: TaskWiring, *, by_hand: bool) -> None:
        if by_hand and wiring.coordination is not None:
            raise TopologyError(
                f"component {wiring.component_id!r} cannot be handled by hand: it belongs to a sub-topology, where the "
                "framework acks; take it out of by_hand"
            )
        if by_hand:
            wiring = replace(wiring, spec=pickle.dumps(HandBolt()))
        random, meter = self._random_of(str(wiring.task_id)), self._meters[wiring.component_id]
        task = make_task(wiring, self._outbox_of(wiring), random, meter)
        self._bolts.setdefault(wiring.component_id, []).append(task)
        self._mailroom.attach(wiring.task_id, _receiver(task))

    def _outbox_of(self, wiring: TaskWiring) -> MessagePacker:
        # packed as between processes, so that tasks share no values, and values that cannot travel are refused
        return MessagePacker(_ALWAYS, wiring.task_id, self._open, frame_messages=1, acker_tasks=wiring.acker_tasks)

    def _open(self, frame: SealedFrame) -> None:
        for message in messages_in(frame):
            self._send(message)

    def _send(self, message: Message) -> None:
        for letter in [message] if self._message_fault is None else self._message_fault(message):
            self._mailroom.send(letter)

    def _time_out(self) -> None:
        for spout in _all(self._spouts):
            end_on(spout.tick())
        for acker in self._ackers:
            acker.tick()
        for bolt in _all(self._bolts):
            if isinstance(bolt, CoordinatedTask):
                bolt.tick()

    def _now_ns(self) -> int:
        return round(self._timers.now_s * 1_000_000_000)

    def _random_of(self, name: str) -> Random:
        return Random(digest64(str(self._seed).encode(), name.encode()))

    def _hand_tasks(self, component_id: str) -> list[tuple[BoltTask, HandBolt]]:
        bolts = _of(self._bolts, component_id, "bolt")
        tasks = [(t, t.bolt) for t in bolts if isinstance(t, BoltTask) and isinstance(t.bolt, HandBolt)]
        if not tasks:
            raise TopologyError(f"component {component_id!r} is not handled by hand; name it in by_hand")
        return tasks

    def _holder(self, tup: PlainTuple) -> BoltTask:
        tasks = (task for task in _all(self._bolts) if isinstance(task, BoltTask))
        for task in tasks:
            if isinstance(task.bolt, HandBolt) and any(held is tup for held in task.bolt.waiting()):
                return task
        raise ValueError(f"{tup!r} is not waiting there; take a tuple that waiting() returns")

    @contextmanager
    def _ending_the_run(self) -> Iterator[None]:
        if self._error is not None:
            raise self._error
        if self._is_closed:
            raise RuntimeError("the run is closed, and so are its bolts and spouts; submit the topology again")
        try:
            yield
        except TransactionError as error:
            self._error = error
            raise


def _receiver(task: BoltTask | CoordinatedTask | SpoutTask) -> Callable[[Message], None]:
    return lambda message: end_on(task.receive(message))


def _all(tasks_of: Mapping[str, list[Held]]) -> list[Held]:
    return [task for tasks in tasks_of.values() for task in tasks]


def _of(held: Mapping[str, Held], component_id: str, what: str) -> Held:
    if component_id not in held:
        raise TopologyError(f"the topology has no {what} {component_id!r}; it has {sorted(held)}")
    return held[component_id]
