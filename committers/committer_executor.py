"""Runs one commit task over a group: attempts in txid order, state open in `finish_batch` only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from committers.slot_report import AttemptVerdict, SlotReport
from coordinated_bolt import (
    BatchBoltExecutor,
    BatchTask,
    CoordinatedBolt,
    IBatchBolt,
    Inbox,
    ITaskHook,
    Send,
    TaskResult,
    TaskWiring,
    no_clock,
)
from coordinated_bolt.batch_bolt_executor import NewCollector
from state import StateReader, StateSession, TransactionAttempt, WriteSet, bind_states


class CommitterExecutor(BatchBoltExecutor):
    """A `BatchBoltExecutor` that opens the declared state while `finish_batch` runs."""

    def __init__(
        self,
        wiring: TaskWiring,
        new_collector: NewCollector,
        *,
        hooks: Sequence[ITaskHook] = (),
        clock: Callable[[], int] = no_clock,
    ) -> None:
        super().__init__(wiring, new_collector, hooks=hooks, clock=clock)
        self.session = StateSession()
        self.as_of_txid = 0
        self.earlier = WriteSet()

    def _finish(self, attempt: TransactionAttempt, bolt: IBatchBolt) -> None:
        bind_states(bolt, self.session)
        self.session.open(self.as_of_txid, self.earlier)
        try:
            super()._finish(attempt, bolt)
        finally:
            self.session.close()


class CommitTask:
    """One commit task.

    Args:
        wiring: the task.
        reader: reads committed state.
        send: takes frames for commit tasks further down.
        hooks: watch every attempt; see `CoordinatedBolt`.
        clock: nanoseconds, for the metrics.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        reader: StateReader,
        send: Send,
        *,
        hooks: Sequence[ITaskHook] = (),
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        bolt = CoordinatedBolt(wiring, send, CommitterExecutor, hooks=hooks, clock=clock)
        assert isinstance(bolt.executor, CommitterExecutor)
        self._executor = bolt.executor
        self._executor.session = StateSession(reader)
        self._task = BatchTask(wiring, bolt)

    def run_group(self, attempts: Sequence[TransactionAttempt], inbox: Inbox, *, composed: bool) -> SlotReport:
        """Runs the attempts in order up to the first failure.

        Args:
            attempts: the group; everything below its first txid is committed.
            inbox: all frames of the task.
            composed: whether to return one write set for the whole prefix.
        """
        report = SlotReport(self._wiring.task_id, self._wiring.component_id, composed=composed)
        self._executor.as_of_txid = attempts[0].txid - 1
        self._executor.earlier = earlier = WriteSet()
        for attempt in attempts:
            result = self._task.run(attempt, inbox.take(attempt), with_id=self._wiring.needs_id)
            session = self._executor.session
            reads = [[name, key] for name, key in sorted(session.reads, key=repr)]
            verdict = AttemptVerdict(result.failure, _edges(result), reads, result.counters, result.metrics)
            report.verdicts.append(verdict)
            if result.failure is not None:
                break
            if not composed:
                report.write_sets.append(session.writes)
            earlier.then(session.writes)
        if composed:
            report.write_sets.append(earlier)
        return report


def _edges(result: TaskResult) -> int:
    edges = result.read_edges
    for edge in result.sent_edges.values():
        edges ^= edge
    return edges
