"""How every task of every stage begins, reads and sends, whatever kind of topology it belongs to.

A stage collects a task's frames and puts them in order before it executes any, so that it does exactly the same when
it is computed again. Frames for stages further down pass through.
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar
from zipimport import zipimporter

from pyspark import TaskContext

from coordinated_bolt.transport.frames import SealedFrame, frame_target, seal_frame
from coordinated_bolt.wiring import TaskWiring
from coordinator.engines.spark.alarm import Alarm, Deadline, alarm_for
from coordinator.plain.plain_plan import PlainPlan
from coordinator.topology.planning.plan import Plan
from state.attempt import TransactionAttempt
from state.fault_points import reached

Addressed = tuple[int, bytes]
"""A packed frame, and the partition of the next stage that it goes to."""
FrameFault = Callable[[int, list[bytes], Sequence[TransactionAttempt]], list[bytes]]
"""Fault point ``frames.read``: (task id, what it read, attempts of the wave) -> what it is given instead."""
PlanT = TypeVar("PlanT", Plan, PlainPlan)
ValueT_co = TypeVar("ValueT_co", covariant=True)

FREEZING_TASKS = 8
"""The first tasks of a worker freeze what there is: enough to have imported and unpickled what all stages need."""
OWN_FILES = Path("/proc/self/fd")
_TASKS = itertools.count(1)
"""The tasks this worker has begun; a fact of the process, like its collector."""


class Shipped(Protocol[ValueT_co]):
    """What executors are sent once and read often, such as Spark's `Broadcast`."""

    @property
    def value(self) -> ValueT_co: ...


@dataclass(frozen=True, slots=True)
class StageEntry(Generic[PlanT]):
    """What each stage of one job is shipped with, so that its tasks can begin.

    Attributes:
        frame_fault: fault point; set by tests only.
        deadline: by when the job has to be done; None for never.
    """

    plan: Shipped[PlanT]
    frame_fault: FrameFault | None = None
    deadline: Deadline | None = None

    def slot(self, stage_index: int, partition: int) -> StageSlot[PlanT]:
        """Begins a partition (executor); every stage calls it first."""
        settle_worker()
        reached("task.beginning")
        plan = self.plan.value
        tasks = plan.chain.stages[stage_index].partitions[partition]
        return StageSlot(plan, tasks, plan.chain.routes_into(stage_index + 1), self)


@dataclass(frozen=True, slots=True)
class StageSlot(Generic[PlanT]):
    """The tasks of one partition of a stage, where they run, one after the other.

    Attributes:
        routes: target -> partition of the next stage.
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
            records: what the stage above has sent into this partition; what has no route any more is dropped.
            wave: the attempts whose places blocks use, for a fault.
            carries: whether another stage follows in this job; without one the frames of others are dropped.
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
        """Ends user code that runs in the block when the deadline is near; one for all tasks, see `Alarm.through`."""
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
        """Returns what was sent since the last call."""
        held, self._held = self._held, []
        return held


def settle_worker() -> None:
    """Readies the worker; called at the beginning of each task.

    The cycle collector looks less often: it would walk all tuples of a wave again and again. And it no longer
    walks what a worker has loaded for good, modules and code: pyspark has it look at everything after every task,
    which took most of a worker's time. What is frozen by mistake is freed as ever once nothing refers to it, unless
    it is part of a cycle, and there are only the first few tasks for that.

    Ctrl-C is not for workers, so a `KeyboardInterrupt` in one is the user's own.
    """
    if TaskContext.get() is None:  # a test that runs stages in its own process
        return
    _acknowledge()
    _keep_archives_listed()
    gc.set_threshold(50_000, 20, 20)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if next(_TASKS) <= FREEZING_TASKS:
        gc.freeze()


def _acknowledge() -> None:
    """Acknowledges over TCP what Java has sent of this task, for it sends the rest after that, or 40 ms later.

    Spark's own Unix sockets have no such wait; they exist from 4.1 on, where the session turns them on.
    """
    for connection in _connections():
        with suppress(OSError):  # a sandbox that does not know the option
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@cache
def _connections() -> tuple[socket.socket, ...]:
    """Returns the TCP connections that this worker began with; none where a system cannot acknowledge on demand."""
    found = []
    for name in os.listdir(OWN_FILES) if hasattr(socket, "TCP_QUICKACK") and OWN_FILES.is_dir() else ():  # noqa: PTH208
        try:
            opened = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # a file, or the list itself
            continue
        if opened.family in (socket.AF_INET, socket.AF_INET6) and opened.type == socket.SOCK_STREAM:
            found.append(opened)
        else:
            opened.close()
    return tuple(found)


def _keep_archives_listed() -> None:
    """Has imports list no archive twice.

    Up to PySpark 4.1 a worker forgets before each task what the folders and archives of its path contain, and reads the
    list of every archive again for every package in it: up to 98 % of its time. Ours is named by its content, and from
    4.2 on no archive is listed again either, unless a new one has come.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter):
            vars(finder)["invalidate_caches"] = _keep


def _keep() -> None:
    """In place of `zipimporter.invalidate_caches`."""
