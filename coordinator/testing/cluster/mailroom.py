"""Moves messages between the tasks of one process, one at a time, in an order drawn from a seed.

There is one first-in-first-out channel from each task to each other task; between channels any order is possible, as
between the machines of a cluster. A task's receive queue is bounded. If it is full, a message waits in the sender's
overflow buffer, and the sender receives no input until this buffer is empty: that is back-pressure. Spouts are the
exception: they always receive their acks, and only cannot emit. Otherwise a spout that waits for room and an acker that
waits for the spout would block each other for ever.

Pure: one seed, one schedule.

Source: Storm's executor receive queue and spout overflow buffer (`topology.executor.receive.buffer.size`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Protocol, TypeVar

from state.values.whole import is_whole

DEFAULT_RECEIVE_CAPACITY = 1_024


class Addressed(Protocol):
    """A message that knows its sender and receiver."""

    @property
    def sender(self) -> int:
        """Task id of the sender."""

    @property
    def target(self) -> int:
        """Task id of the receiver."""


MessageT = TypeVar("MessageT", bound=Addressed)


@dataclass(slots=True)
class _Channel(Generic[MessageT]):
    """The messages from one task to another: messages in the receiver's queue, and then the overflow."""

    sender: int
    target: int
    accepted: deque[MessageT] = field(default_factory=deque)
    overflow: deque[MessageT] = field(default_factory=deque)


@dataclass(slots=True)
class _Desk(Generic[MessageT]):
    """One task as the mailroom sees it."""

    receive: Callable[[MessageT], None]
    wake: Callable[[], bool] | None
    room: int
    overflow_count: int = 0
    is_asleep: bool = False
    waiting: deque[_Channel[MessageT]] = field(default_factory=deque)


class Mailroom(Generic[MessageT]):
    """The channels between the tasks of one run, and the choice of the next delivery.

    Args:
        random: draws every choice.
        receive_capacity: most messages in a task's receive queue, at least 1.
        keeps_order: whether messages between two tasks keep their order.

    Raises:
        ValueError: the capacity is not an integer of at least 1.
    """

    def __init__(
        self, random: Random, receive_capacity: int = DEFAULT_RECEIVE_CAPACITY, *, keeps_order: bool = True
    ) -> None:
        if not is_whole(receive_capacity, 1):
            raise ValueError(f"receive capacity is {receive_capacity!r}; give an integer of at least 1")
        self._random, self._keeps_order = random, keeps_order
        self._capacity = receive_capacity
        self._desks: dict[int, _Desk[MessageT]] = {}
        self._channels: dict[tuple[int, int], _Channel[MessageT]] = {}
        self._ready: dict[tuple[int, int], _Channel[MessageT]] = {}

    def attach(
        self, task_id: int, receive: Callable[[MessageT], None], *, wake: Callable[[], bool] | None = None
    ) -> None:
        """Registers a task, before anything is sent to it.

        Args:
            task_id: id of the task.
            receive: called with each message for the task; may send messages, which are delivered later.
            wake: for a spout, called whenever it may emit. If it returns False, the spout had no tuple, and `wake` is
                not called again until the spout has received a message or `rouse` is called.
        """
        self._desks[task_id] = _Desk(receive, wake, self._capacity)

    def send(self, message: MessageT) -> None:
        """Puts a message into the receiver's queue if there is room, otherwise into the overflow buffer."""
        key = (message.sender, message.target)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = _Channel(*key)
        target = self._desks[message.target]
        if target.room > 0 and not channel.overflow:
            self._accept(channel, target, message)
            return
        if not channel.overflow:
            target.waiting.append(channel)
        channel.overflow.append(message)
        if message.sender in self._desks:
            self._desks[message.sender].overflow_count += 1

    def step(self) -> bool:
        """Delivers one message or wakes one spout; returns False if there was nothing to do."""
        choices: list[_Channel[MessageT] | _Desk[MessageT]] = [
            channel for channel in self._ready.values() if self._may_receive(self._desks[channel.target])
        ]
        choices += [
            desk
            for desk in self._desks.values()
            if desk.wake is not None and not desk.is_asleep and not desk.overflow_count
        ]
        if not choices:
            assert not self._ready, "messages wait, but no task may receive one"
            return False
        chosen = choices[self._random.randrange(len(choices))]
        if isinstance(chosen, _Channel):
            self._deliver(chosen)
        else:
            assert chosen.wake is not None
            chosen.is_asleep = not chosen.wake()
        return True

    def rouse(self) -> None:
        """Wakes spouts that had no tuple; called when something outside has changed."""
        for desk in self._desks.values():
            desk.is_asleep = False

    def discard(self, is_void: Callable[[MessageT], bool]) -> None:
        """Discards the messages for which `is_void` returns true."""
        for channel in self._channels.values():
            kept = [message for message in channel.accepted if not is_void(message)]
            target = self._desks[channel.target]
            target.room += len(channel.accepted) - len(kept)
            channel.accepted = deque(kept)
            if not kept:
                self._ready.pop((channel.sender, channel.target), None)
            kept = [message for message in channel.overflow if not is_void(message)]
            if channel.sender in self._desks:
                self._desks[channel.sender].overflow_count -= len(channel.overflow) - len(kept)
            channel.overflow = deque(kept)
        for desk in self._desks.values():
            desk.waiting = deque(channel for channel in desk.waiting if channel.overflow)
            self._admit(desk)

    def _may_receive(self, desk: _Desk[MessageT]) -> bool:
        return not desk.overflow_count or desk.wake is not None

    def _deliver(self, channel: _Channel[MessageT]) -> None:
        if not self._keeps_order:
            channel.accepted.rotate(self._random.randrange(len(channel.accepted)))
        message = channel.accepted.popleft()
        if not channel.accepted:
            del self._ready[channel.sender, channel.target]
        desk = self._desks[channel.target]
        desk.room += 1
        self._admit(desk)
        desk.is_asleep = False
        desk.receive(message)

    def _admit(self, desk: _Desk[MessageT]) -> None:
        """Moves waiting messages into a task's queue while there is room, from each channel in turn."""
        while desk.room > 0 and desk.waiting:
            channel = desk.waiting.popleft()
            self._accept(channel, desk, channel.overflow.popleft())
            if channel.sender in self._desks:
                self._desks[channel.sender].overflow_count -= 1
            if channel.overflow:
                desk.waiting.append(channel)

    def _accept(self, channel: _Channel[MessageT], target: _Desk[MessageT], message: MessageT) -> None:
        target.room -= 1
        channel.accepted.append(message)
        self._ready[channel.sender, channel.target] = channel
