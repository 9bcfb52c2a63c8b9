"""Runs the tasks chained to a head: after it, in its process, attempt by attempt.

Within an attempt a task runs when all tasks before it have ended, so its input is complete. The input is ordered by
sending task and then by emit, exactly like the frames of an attempt, so a recomputed chain does the same again. At most
one attempt of the whole chain is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.batches.hand_over import HandOver
from coordinated_bolt.transport.outbox import Carrier, NewOutbox
from coordinated_bolt.watching.metrics import no_clock
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt

NoteRunning = Callable[[TransactionAttempt, TaskWiring], None]
"""Called with an attempt and a task just before that task runs it, so that a timeout names the right task."""


class ChainedTasks:
    """The tasks below the head of a chain (executor, one for each task that runs a head).

    The head emits into what `outboxes` returns; once it has ended an attempt, call `run`.

    Args:
        wirings: the chained tasks, in the order in which they run; empty if nothing is chained to the head.
        carrier: takes tuples and counts for tasks outside the chain.
        clock: nanoseconds, for the metrics.

    Attributes:
        skips_empty_batches: whether all chained tasks skip an attempt for which the head emits nothing.
    """

    def __init__(self, wirings: Sequence[TaskWiring], carrier: Carrier, *, clock: Callable[[], int] = no_clock) -> None:
        self._carrier = carrier
        self._handed: dict[int, list[HandOver]] = {}
        self.skips_empty_batches = all(wiring.skips_empty_batches for wiring in wirings)
        self._tasks = [
            (wiring, BatchTask(wiring, CoordinatedBolt(wiring, self.outboxes(wiring), clock=clock)))
            for wiring in wirings
        ]

    def outboxes(self, wiring: TaskWiring) -> NewOutbox:
        """Returns a function that makes the outbox of an attempt, for the head or a task chained to it."""

        def new_hand_overs(attempt: TransactionAttempt) -> list[HandOver]:
            handed = [HandOver(attempt, wiring.task_id, target) for target in wiring.chained_targets]
            for each in handed:
                self._handed.setdefault(each.target, []).append(each)
            return handed

        return wiring.outboxes(self._carrier, new_hand_overs)

    def run(self, attempt: TransactionAttempt, begin: NoteRunning) -> Iterator[tuple[TaskWiring, AttemptResult | None]]:
        """Runs the chained tasks over an attempt that the head has ended, even with a failure.

        Yields each task's result, None if it skipped the attempt.

        Args:
            attempt: the attempt.
            begin: called with the attempt and each task before that task runs.
        """
        for wiring, task in self._tasks:
            handed = self._handed.pop(wiring.task_id, [])
            if task.skip_handed(attempt, handed):
                yield wiring, None
                continue
            begin(attempt, wiring)
            yield wiring, task.run_handed(attempt, sorted(handed, key=attrgetter("sender")))
