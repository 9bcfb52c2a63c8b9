"""Runs the bolt tasks of a chain in one process: they hand tuples over in memory.

A tuple that stays inside the chain arrives with the same values, of the same types, as if it had been packed and
unpacked, and its receiver shares them with no other bolt. It has edges in its trees like any other tuple; both ends of
such an edge are reported here, so they cancel out before an acker sees them. A single bolt is a chain of one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from coordinated_bolt.batches.hand_over import received_row
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.tasks.message_packer import MessagePacker
from coordinator.plain.tasks.messages import Message, StretchOrMessage, TupleStretch


class ChainTask(Protocol):
    """The methods of a task that a chain calls; the task is a `BoltTask` or a `CoordinatedTask`."""

    def start(self) -> Failure | None: ...

    def receive(self, message: Message) -> Failure | None: ...

    def receive_all(self, stretch: TupleStretch) -> Failure | None: ...

    def close(self) -> Failure | None: ...


class ChainFailed(NamedTuple):
    """User code of a task raised.

    Attributes:
        task_id: the task.
        failure: the failure of its user code.
    """

    task_id: int
    failure: Failure


class ChainInbox:
    """The tuples that a task receives from other tasks of its chain, in the order of their emits."""

    def __init__(self) -> None:
        self._stretches: list[TupleStretch] = []
        self._last = (-1, -1)

    def add(self, sender: int, target: int, stream_index: int, row: list[Any], roots: dict[int, int]) -> None:
        """Adds a tuple; its list of values belongs to the receiver from then on."""
        if self._last != (sender, stream_index):
            self._last = (sender, stream_index)
            self._stretches.append(TupleStretch(sender, target, stream_index, [], []))
        stretch = self._stretches[-1]
        stretch.rows.append(row)
        stretch.trees.append(roots)

    def take(self) -> list[TupleStretch]:
        """Returns the tuples that were added since the last call."""
        taken, self._stretches = self._stretches, []
        self._last = (-1, -1)
        return taken


class ChainPacker(MessagePacker):
    """The outbox of a task in a chain of several, which hands tuples over to the other tasks of the chain."""

    def join(self, inboxes: Mapping[int, ChainInbox], head: MessagePacker) -> None:
        """Joins a chain: `inboxes` is chained target -> its inbox. All tasks of the chain share the head's acks."""
        self._inboxes, self.acks = inboxes, head.acks

    def add(self, target: int, stream_index: int, row: list[Any], roots: dict[int, int]) -> None:
        """Hands a tuple over to a task of the chain, or packs it for another target."""
        inbox = self._inboxes.get(target)
        if inbox is None:
            super().add(target, stream_index, row, roots)
        else:
            inbox.add(self._sender, target, stream_index, received_row(row), roots)


@dataclass(frozen=True, slots=True)
class _Member:
    wiring: TaskWiring
    task: ChainTask
    inbox: ChainInbox
    packer: MessagePacker


class BoltChain:
    """The tasks of one chain during one wave; call `run` once.

    Args:
        wirings: wirings of the tasks, in flow order from the head.
        make_task: (wiring, outbox) -> the task.
        make_packer: (wiring, class) -> the outbox of the task.
        begin: called with the task that is about to run user code.
    """

    def __init__(
        self,
        wirings: Sequence[TaskWiring],
        make_task: Callable[[TaskWiring, MessagePacker], ChainTask],
        make_packer: Callable[[TaskWiring, type[MessagePacker]], MessagePacker],
        begin: Callable[[TaskWiring], None],
    ) -> None:
        self._begin = begin
        self._members: list[_Member] = []
        inboxes = {wiring.task_id: ChainInbox() for wiring in wirings}
        packers = [make_packer(wiring, MessagePacker if len(wirings) == 1 else ChainPacker) for wiring in wirings]
        for wiring, packer in zip(wirings, packers, strict=True):
            if isinstance(packer, ChainPacker):
                packer.join({target: inboxes[target] for target in wiring.chained_targets}, packers[0])
            self._members.append(_Member(wiring, make_task(wiring, packer), inboxes[wiring.task_id], packer))

    def run(self, frames: Iterable[Iterable[StretchOrMessage]]) -> Generator[None, None, ChainFailed | None]:
        """Prepares the bolts, lets them execute all tuples, and cleans up; stops at the first failure and returns it.

        Pauses after every frame, so that finished frames can be sent.

        Args:
            frames: the contents that the head has received, frame by frame.
        """
        for member in self._members:
            self._begin(member.wiring)
            failure = member.task.start()
            if failure is not None:
                return ChainFailed(member.wiring.task_id, failure)
        for contents in frames:
            for each in contents:
                failed = self._received(self._members[0], (each,)) or self._handed_over(1)
                if failed is not None:
                    return failed
            yield
        for place, member in enumerate(self._members, start=1):
            self._begin(member.wiring)
            failure = member.task.close()
            failed = ChainFailed(member.wiring.task_id, failure) if failure is not None else self._handed_over(place)
            if failed is not None:
                return failed
        for member in self._members:
            member.packer.close()
        return None

    def _handed_over(self, first: int) -> ChainFailed | None:
        """Lets the members from `first` on execute the tuples that were handed over to them."""
        for member in self._members[first:]:
            stretches = member.inbox.take()
            failed = self._received(member, stretches) if stretches else None
            if failed is not None:
                return failed
        return None

    def _received(self, member: _Member, contents: Iterable[StretchOrMessage]) -> ChainFailed | None:
        self._begin(member.wiring)
        for each in contents:
            failure = member.task.receive_all(each) if isinstance(each, TupleStretch) else member.task.receive(each)
            if failure is not None:
                return ChainFailed(member.wiring.task_id, failure)
        return None
