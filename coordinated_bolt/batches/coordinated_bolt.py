"""A batch bolt that knows when its batch is complete.

Three kinds of tuples reach a task. REGULAR tuples are data and go to the bolt. A COORD tuple reports how many REGULAR
tuples its sender has sent for the attempt. The ID tuple reaches only committers and marks the start of the commit
phase. When every task upstream has reported, the counts match and a committer has its ID, the batch is finished, once:
the bolt's `finish_batch` runs, and a report tells every task downstream how many tuples it was sent, zero included.

Source: backtype.storm.coordination.CoordinatedBolt. See `tracking` for what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from coordinated_bolt.batches.attempt_collector import AttemptCollector, taken_late
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor, Stretch
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.completeness.tracking import SourceArgs, Tracking, TrackingStatus
from coordinated_bolt.transport.outbox import NewOutbox
from coordinated_bolt.user_failure import failure_of
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.watching.task_observer import HookObserver, TaskObserver
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.errors import TransactionError
from state.fault_points import reached


class RegularTuples(NamedTuple):
    """REGULAR tuples of one or several origins, in order.

    Attributes:
        stretches: the tuples.
        is_counted: False for the tuple that begins a batch at the master of a sub-topology, whose count nobody reports.
    """

    stretches: Sequence[Stretch]
    is_counted: bool = True


class CoordTuples(NamedTuple):
    """COORD tuples of one or several tasks upstream.

    Attributes:
        reporters: the tasks.
        tuple_counts: task -> how many tuples it has sent to this task, without zeros.
    """

    reporters: frozenset[int]
    tuple_counts: Mapping[int, int]

    @classmethod
    def of(cls, task: int, tuple_count: int) -> CoordTuples:
        """Returns the COORD tuple of one task."""
        return cls(frozenset((task,)), {task: tuple_count} if tuple_count else {})


class IdTuple(NamedTuple):
    """The ID tuple: the attempt's commit phase has begun."""


TaskEvent = RegularTuples | CoordTuples | IdTuple | Failure
"""The events of an attempt on a task; a `Failure` means that some of its input is unreadable."""


class CoordinatedBolt:
    """Finishes each batch of one task's bolt once it is complete on this task.

    Knows tuples and counts, not what carries them: `BatchTask` calls it for frames, `CoordinatedTask` for the messages
    of a sub-topology, whose batches are attempts here.

    Args:
        wiring: the task.
        new_outbox: makes the outbox of an attempt, which sends tuples and reports to the tasks downstream by its own
            transport.
        executor_class: runs the bolts; committers have a different one.
        observer: notified of each step of every attempt's bolt.
        clock: nanoseconds, for the metrics.
    """

    def __init__(
        self,
        wiring: TaskWiring,
        new_outbox: NewOutbox,
        executor_class: type[BatchBoltExecutor] = BatchBoltExecutor,
        *,
        observer: TaskObserver | None = None,
        clock: Callable[[], int] = no_clock,
    ) -> None:
        self._wiring = wiring
        self._new_outbox = new_outbox
        self.executor = executor_class(wiring, self._open, observer=observer, clock=clock)
        self._tracking = _tracking(wiring)
        self._finished: dict[TransactionAttempt, AttemptResult] = {}

    def on(self, attempt: TransactionAttempt, events: Iterable[TaskEvent]) -> None:
        """Handles events of an attempt, in order, and then finishes its batch if it is complete."""
        tracking = self._tracking
        for event in events:
            if isinstance(event, CoordTuples):
                tracking.coords(attempt, event.reporters, event.tuple_counts)
            elif isinstance(event, RegularTuples):
                self._execute(attempt, event)
            elif isinstance(event, IdTuple):
                tracking.id(attempt)
            else:
                tracking.fail(attempt, event)
        self._finish_when_complete(attempt)

    def run(
        self,
        attempt: TransactionAttempt,
        stretches: Sequence[Stretch],
        reporters: frozenset[int],
        tuple_counts: Mapping[int, int],
        *,
        with_id: bool = False,
    ) -> AttemptResult:
        """Does the same as `on` and `end`, for an attempt with exactly these tuples and counts.

        A good attempt is not recorded.
        """
        failure = self.executor.execute(attempt, stretches) if stretches else None
        received: dict[int, int] = {}
        for origin, rows in stretches:
            if rows:
                received[origin.source_task] = received.get(origin.source_task, 0) + len(rows)
        if failure is None and self._tracking.is_complete(reporters, tuple_counts, received, has_id=with_id):
            result = self._finish(attempt)
            if result.failure is None:
                return self._closed(result)
            failure = result.failure
        tracking = self._tracking
        if failure is not None:
            tracking.fail(attempt, failure)
        for task, tuple_count in received.items():
            tracking.regular(attempt, task, tuple_count)
        tracking.coords(attempt, reporters, tuple_counts)
        if with_id:
            tracking.id(attempt)
        return self.end(attempt)

    def skip(self, attempt: TransactionAttempt, reporters: frozenset[int]) -> bool:
        """Finishes an attempt without a bolt if its whole input is these reports of zero tuples.

        Returns False if the bolt has to run, as most bolts have to even then. An ID counts as arrived.
        """
        if not (self._wiring.skips_empty_batches and self._tracking.is_complete(reporters)):
            return False
        self._new_outbox(attempt).close()
        return True

    def is_finished(self, attempt: TransactionAttempt) -> bool:
        """Returns whether the batch finished without a failure, and nothing has arrived since."""
        return attempt in self._finished and self._tracking.status(attempt) is TrackingStatus.COMPLETE

    def is_lost(self, attempt: TransactionAttempt) -> bool:
        """Returns whether the attempt has failed or is bound to fail."""
        return self._tracking.is_lost(attempt)

    def noted(self, attempt: TransactionAttempt) -> Failure | None:
        """Returns the failure recorded so far; `end` judges it by all input that has arrived."""
        return self._tracking.noted(attempt)

    def end(self, attempt: TransactionAttempt) -> AttemptResult:
        """Ends an attempt for which nothing more can arrive: returns its result and forgets it."""
        self._finish_when_complete(attempt)
        result = self._finished.pop(attempt, None)
        if result is None or self._tracking.status(attempt) is not TrackingStatus.COMPLETE:
            # failed, or a surplus arrived after the counts had matched
            result = AttemptResult(attempt, self._tracking.failure(attempt))
            self.executor.timeout_id(attempt)
        self._tracking.forget(attempt)
        return self._closed(result)

    def _closed(self, result: AttemptResult) -> AttemptResult:
        """Forgets an attempt that has ended, and returns its result."""
        attempt = result.attempt
        metrics, collector = self.executor.metrics(attempt), self.executor.collector(attempt)
        if collector is not None:
            collector.count_into(metrics)
            if result.failure is not None:
                collector.close()
        cleanup_failure = self.executor.drop(attempt)
        if result.failure is None and (failure := taken_late(self._wiring) or cleanup_failure) is not None:
            result = AttemptResult(attempt, failure)
        result.metrics[self._wiring.component_id] = metrics
        return result

    def _execute(self, attempt: TransactionAttempt, event: RegularTuples) -> None:
        """Lets the bolt execute tuples; after a failure, or once the batch was finished, only counts them."""
        if attempt not in self._finished and self._tracking.noted(attempt) is None:
            failure = self.executor.execute(attempt, event.stretches)
            if failure is not None:
                self._tracking.fail(attempt, failure)
        if event.is_counted:
            for origin, rows in event.stretches:
                self._tracking.regular(attempt, origin.source_task, len(rows))

    def _finish_when_complete(self, attempt: TransactionAttempt) -> None:
        if attempt in self._finished or self._tracking.status(attempt) is not TrackingStatus.COMPLETE:
            return
        result = self._finished[attempt] = self._finish(attempt)
        if result.failure is not None:
            self._tracking.fail(attempt, result.failure)

    def _finish(self, attempt: TransactionAttempt) -> AttemptResult:
        reached("batch.executed")
        failure = self.executor.finished_id(attempt)
        reached("batch.finished")
        result = AttemptResult(attempt)
        result.failure = failure or self._report(result)
        return result

    def _report(self, result: AttemptResult) -> Failure | None:
        """Closes the outbox, which sends every task downstream its COORD; the codec may refuse a value there."""
        attempt, where = result.attempt, (self._wiring.component_id, self._wiring.task_index)
        try:
            result.counters = self.executor.counters(attempt)
        except (TypeError, ValueError) as error:
            return failure_of(error, *where)
        collector = self.executor.collector(attempt)
        if collector is not None:
            collector.close(is_good=True)
        outbox = self._new_outbox(attempt) if collector is None else collector.outbox
        try:
            result.add_sent(outbox.close(), self._wiring.commit_targets)
            if collector is not None and (letters := collector.letters()):
                result.letters[self._wiring.task_id] = letters
        except (TransactionError, TypeError) as error:
            return failure_of(error, *where)
        return None

    def _open(self, attempt: TransactionAttempt, observer: HookObserver) -> AttemptCollector:
        return AttemptCollector(self._wiring, attempt, self._new_outbox(attempt), observer)


def _tracking(wiring: TaskWiring) -> Tracking:
    """Returns a fresh tracking with the tasks that must all report, and the groups in which only one task does."""
    upstream: list[int] = []
    groups: list[tuple[int, ...]] = []
    if wiring.coordination is None:
        upstream = list(wiring.upstream)
    else:
        for component_id, args in wiring.coordination.source_args.items():
            tasks = wiring.tasks_of[component_id]
            groups.append(tasks) if args is SourceArgs.SINGLE else upstream.extend(tasks)
    return Tracking(
        upstream,
        single_groups=groups,
        needs_id=wiring.needs_id,
        component_id=wiring.component_id,
        task_index=wiring.task_index,
    )
