"""The tasks of a transactional topology in one process, and their messages, one frame at a time.

`BatchTask`, `CommitTask`, `EmitterTask` and `BatchAcker` do the work, as on Spark; this module decides when. A
processing task reports as soon as its counts match. A commit task executes tuples as they arrive, and finishes attempts
in txid order once their commit phase has begun. The engine ends all other attempts when nothing more is in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from committers.committer_executor import CommitTask
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import Frame
from coordinated_bolt.transport.outbox import Carrier
from coordinated_bolt.watching.task_observer import TaskObserver
from coordinated_bolt.wiring import TaskWiring
from coordinator.spouts.batch import Batch
from state.attempt import TransactionAttempt
from state.kinds.session import StateReader

Report = Callable[[int, TransactionAttempt, AttemptResult | None], None]


class BatchTuple(NamedTuple):
    """The batch tuple: asks an emitter to emit its share of an attempt."""

    target: int
    batch: Batch
    sender: int = DRIVER

    @property
    def attempt(self) -> TransactionAttempt:
        """The attempt that it belongs to."""
        return self.batch.attempt


class GroupStart(NamedTuple):
    """The ID tuples of a group: its commit phase has begun, in this order."""

    target: int
    attempts: tuple[TransactionAttempt, ...]
    composed: bool
    sender: int = DRIVER

    @property
    def attempt(self) -> TransactionAttempt:
        """The first attempt of the group; all its attempts belong to one wave."""
        return self.attempts[0]


TaskInput = Frame | BatchTuple | GroupStart
"""A message between tasks."""


class ProcessingTask:
    """A task of a bolt of the processing phase.

    Args:
        carrier: takes frames for tasks downstream.
        report: called with the task, an attempt and its result, once per attempt.
    """

    def __init__(
        self, wiring: TaskWiring, carrier: Carrier, report: Report, observer: TaskObserver | None = None
    ) -> None:
        self._task = BatchTask(wiring, CoordinatedBolt(wiring, wiring.outboxes(carrier), observer=observer))
        self._task_id, self._report = wiring.task_id, report
        self._reported: set[TransactionAttempt] = set()

    def receive(self, frame: Frame) -> None:
        """Executes a frame; ignores a frame that arrives after the report, since it is a duplicate."""
        attempt = frame.attempt
        if attempt in self._reported:
            return
        self._task.receive(frame)
        if self._task.is_finished(attempt):
            self.end(attempt)

    def end(self, attempt: TransactionAttempt) -> None:
        """Reports the attempt, unless it is reported; called when no more frames will arrive for it."""
        if attempt not in self._reported:
            self._reported.add(attempt)
            self._report(self._task_id, attempt, self._task.end(attempt))

    def forget(self, attempt: TransactionAttempt) -> None:
        """Frees the attempt, reported or not."""
        if attempt not in self._reported:
            self._task.end(attempt)
        self._reported.discard(attempt)


class CommittingTask:
    """A task of a bolt of the commit phase.

    It keeps frames of the processing phase until the attempt is forgotten, because the commit phase may have to run
    again, with new bolts.

    Args:
        carrier: takes the frames for commit tasks downstream.
        commit_tasks: all tasks of the commit phase; their frames are not kept, because these tasks send them again.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        reader: StateReader,
        carrier: Carrier,
        commit_tasks: frozenset[int],
        observer: TaskObserver | None = None,
    ) -> None:
        self._wiring = wiring
        self._commit = CommitTask(wiring, reader, carrier, observer=observer)
        self._commit_tasks = commit_tasks
        self._kept: dict[TransactionAttempt, list[Frame]] = {}
        self._spent: set[TransactionAttempt] = set()
        self._group: Sequence[TransactionAttempt] = ()
        self._is_open = False

    def receive(self, frame: Frame) -> None:
        """Executes a frame that arrives in either phase; ignores a frame that arrives after the result."""
        if frame.sender not in self._commit_tasks:
            self._kept.setdefault(frame.attempt, []).append(frame)
        if frame.attempt not in self._spent:
            self._commit.task.receive(frame)
            self._advance()

    def prepare(self, attempt: TransactionAttempt) -> None:
        """Gives the attempt a new bolt; called before a group begins if an earlier group has used the old one."""
        self._spent.discard(attempt)
        for frame in self._kept.get(attempt, ()):
            self._commit.task.receive(frame)

    def is_spent(self, attempt: TransactionAttempt) -> bool:
        """Returns whether an earlier group has used the attempt's bolt."""
        return attempt in self._spent

    def begin(self, attempts: Sequence[TransactionAttempt], *, composed: bool) -> None:
        """Begins the commit phase of a group, when its ID tuples arrive."""
        self._group, self._is_open = attempts, True
        self._commit.begin(attempts[0].txid, composed=composed)
        self._give_id()
        self._advance()

    def end_group(self, attempts: Iterable[TransactionAttempt]) -> TaskReport:
        """Ends a group for which no more frames will arrive; returns its report, up to the first failure."""
        if self._is_open and (unfinished := self._next()) is not None:
            self._conclude(unfinished)
        self._is_open = False
        for attempt in attempts:
            if attempt not in self._spent:
                self._commit.task.end(attempt)
                self._spent.add(attempt)
        return self._commit.close()

    def forget(self, attempt: TransactionAttempt) -> None:
        """Frees the attempt."""
        if attempt not in self._spent:
            self._commit.task.end(attempt)
        self._spent.discard(attempt)
        self._kept.pop(attempt, None)

    def _advance(self) -> None:
        while self._is_open and (attempt := self._next()) is not None and self._commit.task.is_finished(attempt):
            self._conclude(attempt)
            self._give_id()

    def _conclude(self, attempt: TransactionAttempt) -> None:
        self._spent.add(attempt)
        self._is_open = self._commit.conclude(attempt)

    def _give_id(self) -> None:
        """Passes the ID to the attempt whose turn it is, because `finish_batch` runs in txid order."""
        attempt = self._next()
        if attempt is not None and self._wiring.needs_id:
            self._commit.task.id(attempt)

    def _next(self) -> TransactionAttempt | None:
        done = len(self._commit.report.results)
        return self._group[done] if done < len(self._group) else None
