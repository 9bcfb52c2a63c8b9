"""What every task of every stage does to begin, to read and to send, in any kind of topology.

A stage collects a task's frames and sorts them before it executes any, so that it does exactly the same when it is
computed again. Frames for later stages pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from coordinated_bolt.transport.frames import SealedFrame, frame_target, seal_frame
from coordinated_bolt.wiring import TaskWiring
from coordinator.engines.waves.alarm import Alarm, Deadline, alarm_for
from coordinator.topology.planning.stages import TaskPlan
from state.attempt import TransactionAttempt
from state.fault_points import reached

Addressed = tuple[int, bytes]
"""The partition of the next stage that a frame goes to, and the packed frame."""
StageFunction = Callable[[int, Iterable[Any]], Iterable[Any]]
"""A function that runs on the records of a partition: (partition, records) -> records."""
FrameFault = Callable[[int, list[bytes], Sequence[TransactionAttempt]], list[bytes]]
"""Fault point ``frames.read``: (task id, frames it read, attempts of the wave) -> frames it is given instead."""
PlanT = TypeVar("PlanT", bound=TaskPlan)
ValueT_co = TypeVar("ValueT_co", covariant=True)


class Shipped(Protocol[ValueT_co]):
    """A value that executors are sent once and read often, such as Spark's `Broadcast`."""

    @property
    def value(self) -> ValueT_co: ...


@dataclass(frozen=True, slots=True)
class StageContext(Generic[PlanT]):
    """The values that each stage of one job is shipped with, so that its tasks can begin.

    Attributes:
        frame_fault: fault point; set by tests only.
        deadline: when the job has to be done; None if it has no deadline.
    """

    plan: Shipped[PlanT]
    frame_fault: FrameFault | None = None
    deadline: Deadline | None = None

    def slot(self, stage_index: int, partition: int) -> StageSlot[PlanT]:
        """Begins a partition; every stage calls it first (executor)."""
        reached("task.beginning")
        plan = self.plan.value
        tasks = plan.chain.stages[stage_index].partitions[partition]
        return StageSlot(plan, tasks, plan.chain.routes_into(stage_index + 1), self)


@dataclass(frozen=True, slots=True)
class StageSlot(Generic[PlanT]):
    """The tasks of one partition of a stage, as the executor runs them, one after the other.

    Attributes:
        routes: target -> partition of the next stage.
    """

    plan: PlanT
    tasks: tuple[int, ...]
    routes: Mapping[int, int]
    entry: StageContext[PlanT]

    def read(
        self, records: Iterable[Addressed], *, wave: Sequence[TransactionAttempt] = (), carries: bool = True
    ) -> Generator[Addressed, None, dict[int, list[bytes]]]:
        """Yields the frames for other tasks, and returns each task's own in order, or what a fault makes of them.

        Args:
            records: the frames that the stage above has sent to this partition; those without a route are dropped.
            wave: the attempts whose places are used in blocks; for a fault.
            carries: whether another stage follows in this job; otherwise the frames for other tasks are dropped.
        """
        own: dict[int, list[bytes]] = {task: [] for task in self.tasks}
        routes = self.routes if carries else {}
        for _, packed in records:
            target = frame_target(packed)
            if target in own:
                own[target].append(packed)
            elif target in routes:
                yield routes[target], packed
        fault = self.entry.frame_fault
        if fault is not None:
            own = {task: fault(task, frames, wave) for task, frames in own.items()}
        return {task: sorted(frames) for task, frames in own.items()}

    def alarm(self, first: TaskWiring) -> AbstractContextManager[Alarm]:
        """Interrupts user code in the block when the deadline is near; one alarm for all tasks, see `Alarm.through`."""
        return alarm_for(first, self.entry.deadline)


class Post:
    """Outgoing frames of one partition on their way to the next stage.

    Args:
        routes: target task -> partition of the next stage.
    """

    def __init__(self, routes: Mapping[int, int]) -> None:
        self._routes = routes
        self._held: list[Addressed] = []

    def send(self, frame: SealedFrame) -> None:
        packed = seal_frame(frame)
        reached("frame.packed")
        self._held.append((self._routes[frame.target], packed))

    def take(self) -> list[Addressed]:
        """Returns the frames sent since the last call."""
        held, self._held = self._held, []
        return held
