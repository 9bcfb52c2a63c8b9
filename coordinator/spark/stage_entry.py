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
from coordinator.planning.plan import Plan
from coordinator.planning.wave_plan import WavePlan
from coordinator.spark.alarm import Alarm, Deadline, alarm_for
from coordinator.spark.frame_flow import Addressed, FrameFault, sort_out
from coordinator.spark.worker import settle_worker
from state.attempt import TransactionAttempt
from state.fault_points import reached

if TYPE_CHECKING:
    from pyspark import Broadcast

PlanT = TypeVar("PlanT", Plan, WavePlan)


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
        settle_worker()
        reached("task.beginning")
        plan = self.plan.value
        task_id = plan.chain.stages[stage_index].tasks[partition]
        return StageTask(plan, task_id, plan.chain.routes_into(stage_index + 1), self)


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
        """Carries on the frames of others, and returns the task's own in order, or what a fault makes of them.

        Args:
            records: what the stage above has sent into this partition.
            wave: the attempts whose places blocks use, for a fault.
            carries: whether another stage follows in this job; without one the frames of others are dropped.
        """
        own = yield from sort_out(records, self.task_id, self.routes if carries else {})
        fault = self.entry.frame_fault
        return sorted(own if fault is None else fault(self.task_id, own, wave))

    def alarm(self, wiring: TaskWiring) -> AbstractContextManager[Alarm]:
        """Ends user code that runs in the block when the deadline is near."""
        return alarm_for(wiring, self.entry.deadline)
