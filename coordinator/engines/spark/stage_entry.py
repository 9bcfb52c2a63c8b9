"""How every task of every stage begins, whatever kind of topology it belongs to.

A stage collects a task's frames and puts them in order before it executes any, so that it does exactly the same when
it is computed again. Frames for stages further down pass through.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from coordinated_bolt.wiring import TaskWiring
from coordinator.engines.spark.alarm import Alarm, Deadline, alarm_for
from coordinator.engines.spark.frame_flow import Addressed, FrameFault, sort_out
from coordinator.engines.spark.worker import settle_worker
from coordinator.plain.plain_plan import PlainPlan
from coordinator.topology.planning.plan import Plan
from state.attempt import TransactionAttempt
from state.fault_points import reached

if TYPE_CHECKING:
    from pyspark import Broadcast

PlanT = TypeVar("PlanT", Plan, PlainPlan)


@dataclass(frozen=True, slots=True)
class StageEntry(Generic[PlanT]):
    """What each stage of one job is shipped with, so that its tasks can begin.

    Attributes:
        plan: the plan.
        frame_fault: fault point; set by tests only.
        deadline: by when the job has to be done; None for never.
    """

    plan: Broadcast[PlanT]
    frame_fault: FrameFault | None = None
    deadline: Deadline | None = None

    def task(self, stage_index: int, partition: int) -> StageTask[PlanT]:
        """Begins a task (executor); every stage calls it first, once a partition."""
        return self.slot(stage_index, partition).only_task()

    def slot(self, stage_index: int, partition: int) -> StageSlot[PlanT]:
        """Begins a partition (executor); every stage calls it, or `task` if its partitions hold one task each."""
        settle_worker()
        reached("task.beginning")
        plan = self.plan.value
        tasks = plan.chain.stages[stage_index].partitions[partition]
        return StageSlot(plan, tasks, plan.chain.routes_into(stage_index + 1), self)


@dataclass(frozen=True, slots=True)
class StageSlot(Generic[PlanT]):
    """The tasks of one partition of a stage, where they run, one after the other.

    Attributes:
        plan: the plan.
        tasks: their task ids.
        routes: target -> partition of the next stage.
        entry: what it was shipped with.
    """

    plan: PlanT
    tasks: tuple[int, ...]
    routes: Mapping[int, int]
    entry: StageEntry[PlanT]

    def read(
        self, records: Iterable[Addressed], *, wave: Sequence[TransactionAttempt] = (), carries: bool = True
    ) -> Generator[Addressed, None, dict[int, list[bytes]]]:
        """Carries on the frames of others, and returns each task's own in order, or what a fault makes of them.

        Args:
            records: what the stage above has sent into this partition.
            wave: the attempts whose places blocks use, for a fault.
            carries: whether another stage follows in this job; without one the frames of others are dropped.
        """
        own = yield from sort_out(records, self.tasks, self.routes if carries else {})
        fault = self.entry.frame_fault
        if fault is not None:
            own = {task: fault(task, frames, wave) for task, frames in own.items()}
        return {task: sorted(frames) for task, frames in own.items()}

    def alarm(self, first: TaskWiring) -> AbstractContextManager[Alarm]:
        """Ends user code that runs in the block when the deadline is near; one for all tasks, see `Alarm.through`."""
        return alarm_for(first, self.entry.deadline)

    def only_task(self) -> StageTask[PlanT]:
        """Returns the task of a partition that holds no other."""
        (task_id,) = self.tasks
        return StageTask(self.plan, task_id, self.routes, self.entry)


@dataclass(frozen=True, slots=True)
class StageTask(Generic[PlanT]):
    """One task of a stage, where it runs.

    Attributes:
        plan: the plan.
        task_id: the task.
        routes: target -> partition of the next stage.
        entry: what it was shipped with.
    """

    plan: PlanT
    task_id: int
    routes: Mapping[int, int]
    entry: StageEntry[PlanT]

    def read(
        self, records: Iterable[Addressed], *, wave: Sequence[TransactionAttempt] = (), carries: bool = True
    ) -> Generator[Addressed, None, list[bytes]]:
        """See `StageSlot.read`."""
        own = yield from self._slot().read(records, wave=wave, carries=carries)
        return own[self.task_id]

    def alarm(self, wiring: TaskWiring) -> AbstractContextManager[Alarm]:
        """Ends user code that runs in the block when the deadline is near."""
        return alarm_for(wiring, self.entry.deadline)

    def _slot(self) -> StageSlot[PlanT]:
        return StageSlot(self.plan, (self.task_id,), self.routes, self.entry)
