"""Runs one commit task over a group: attempts in txid order, with state open only in `finish_batch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor, NewCollector
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.columns import column_of, from_wire
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.transport.blocks import Arrived, Inbox, PlacedFrame
from coordinated_bolt.transport.outbox import Carrier
from coordinated_bolt.watching.metrics import TaskMetrics, no_clock
from coordinated_bolt.watching.task_observer import TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.codec import CodecError, unpack
from state.commits.write_set import WriteSet
from state.errors import FailedException
from state.kinds.handles import DeclaredState, bound_states
from state.kinds.session import StateReader, StateSession, WaitingValues, nothing_waits
from state.values.state_kind import Field, StateKind


class CommitterExecutor(BatchBoltExecutor):
    """A `BatchBoltExecutor` that opens the declared state while `finish_batch` runs.

    Attributes:
        session: the declared state; it keeps the reads and writes of the last `finish_batch`.
        earlier: the task's writes in lower transactions of the group.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        new_collector: NewCollector,
        *,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        super().__init__(wiring, new_collector, observer=observer, clock=clock)
        self.session = StateSession()
        self.earlier = WriteSet()
        self._states: dict[str, DeclaredState] | None = None  # known once there is a first bolt

    def _finish(self, attempt: TransactionAttempt, bolt: IBatchBolt) -> None:
        if self._states is None:
            self._states = bound_states(bolt)
        self.session.bind(bolt, self._states)
        self.session.place = (attempt.txid, self._wiring.task_index)
        self.session.open(self.earlier)
        try:
            super()._finish(attempt, bolt)
        finally:
            self.session.close()

    def _skip(self) -> None:
        self.session.open(self.earlier)
        self.session.close()  # without reads or writes


class CommitTask:
    """One commit task (executor); runs one group after the other.

    An engine that has all frames calls `run_group`. One that delivers frames as they arrive calls `begin`, passes the
    frames to `task`, calls `conclude` for each attempt in order, and then `close`.

    Args:
        wiring: the task.
        reader: reads committed state.
        carrier: takes tuples and counts for commit tasks downstream.
        observer: notified of each step of every attempt's bolt.
        clock: in nanoseconds, for the metrics.

    Attributes:
        task: executes frames.
        report: the task's report on the last group begun; one result per attempt, up to the first failure.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        reader: StateReader,
        carrier: Carrier,
        *,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        bolt = CoordinatedBolt(wiring, wiring.outboxes(carrier), CommitterExecutor, observer=observer, clock=clock)
        assert isinstance(bolt.executor, CommitterExecutor)
        self._executor = bolt.executor
        self._executor.session = StateSession(reader)
        self.task = BatchTask(wiring, bolt)
        self.report = TaskReport(wiring.task_id, wiring.component_id)

    def run_group(
        self,
        attempts: Sequence[TransactionAttempt],
        inbox: Inbox,
        *,
        composed: bool,
        begin: Callable[[TransactionAttempt], None] = lambda attempt: None,
    ) -> TaskReport:
        """Runs the attempts in order up to the first failure, one live bolt at a time.

        Args:
            attempts: the group; everything below its first txid is committed.
            inbox: the blocks that the task has read.
            composed: whether to return one write set for the whole prefix.
            begin: called with each attempt before it runs.
        """
        waiting = WaitingTuples(self._wiring, inbox, attempts)
        self.begin(attempts[0].txid, composed=composed, waiting=waiting.values)
        for attempt in attempts:
            begin(attempt)
            arrived = waiting.take(attempt)
            result = self.task.run(attempt, arrived, with_id=self._wiring.needs_id)
            if result is None:
                self._add_skipped(attempt)
            elif not self._add(result):
                break
        return self.close()

    def _add_skipped(self, attempt: TransactionAttempt) -> None:
        self.report.results.append(AttemptResult(attempt, metrics={self._wiring.component_id: TaskMetrics()}))
        if not self.report.composed:
            self.report.write_sets.append(WriteSet())

    def begin(self, first_txid: int, *, composed: bool, waiting: WaitingValues = nothing_waits) -> None:
        """Begins a group; everything below its first txid is committed, and `waiting` gives its unexecuted tuples."""
        self.report = TaskReport(self._wiring.task_id, self._wiring.component_id, composed=composed)
        self._executor.session.begin_group(first_txid - 1, waiting)
        self._executor.earlier = WriteSet()
        if composed:
            self.report.write_sets.append(self._executor.earlier)

    def conclude(self, attempt: TransactionAttempt) -> bool:
        """Ends the group's next attempt, which has arrived completely: adds its result, returns whether it is good."""
        return self._add(self.task.end(attempt))

    def _add(self, result: AttemptResult) -> bool:
        session = self._executor.session
        if session.reads:
            result.reads = [[name, key] for name, key in sorted(session.reads, key=repr)]
        self.report.results.append(result)
        if result.failure is not None:
            return False
        if not self.report.composed:
            self.report.write_sets.append(session.writes.settled())
        self._executor.earlier.then(session.writes)
        return True

    def close(self) -> TaskReport:
        """Ends the group and returns the report, with the composed changes packed for the server."""
        if self.report.composed:
            for write_set in self.report.write_sets:
                write_set.pack(self._wiring.shard_count)
        return self.report


class WaitingTuples:
    """The group's tuples at one commit task (executor), unpacked only on demand.

    Args:
        wiring: the task.
        inbox: the blocks that the task has read.
        attempts: the group.
    """

    def __init__(self, wiring: TaskWiring, inbox: Inbox, attempts: Sequence[TransactionAttempt]) -> None:
        self._wiring, self._inbox, self._attempts = wiring, inbox, attempts
        self._executed: Sequence[PlacedFrame] = ()

    def take(self, attempt: TransactionAttempt) -> Arrived:
        """Takes an attempt from the inbox; `values` still yields its tuples, until the next attempt is taken."""
        arrived = self._inbox.take(attempt)
        self._executed = arrived.frames
        return arrived

    def values(self, names: Sequence[str]) -> Iterator[Sequence[Any]]:
        """Yields the values of tuple fields, frame by frame in the group's order; implements `WaitingValues`.

        An unreadable frame is skipped: its attempt fails when it is executed.
        """
        for frames in chain([self._executed], map(self._inbox.waiting, self._attempts)):
            for frame in frames:
                yield from self._columns(frame, names)

    def _columns(self, frame: PlacedFrame, names: Sequence[str]) -> list[list[Any]]:
        try:
            streams = self._wiring.upstream[frame.sender].streams
            return [
                column_of(from_wire(rows), streams[stream].fields.index(name))
                for stream, rows in unpack(frame.payload)
                for name in names
                if name in streams[stream].fields
            ]
        except (CodecError, KeyError, IndexError, TypeError, ValueError):
            return []


class RefusingReader:
    """A `StateReader` that refuses every read, while the transactions below the group may not be committed yet.

    It does not matter how user code handles the exception: the session has already recorded the read, so the driver
    sees it in the report and discards the report.
    """

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> Any:
        """Refuses.

        Raises:
            FailedException: always.
        """
        raise FailedException(f"state {name!r} cannot be read before the commit phase")
