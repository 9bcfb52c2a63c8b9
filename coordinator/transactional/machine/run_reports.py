"""Prepares what engines report for the run machine: outcomes in order, and the dead letters of a group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from committers.task_report import TaskReport
from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.machine.run_events import Attempts
from state.attempt import TransactionAttempt

TaskLetters = list[tuple[int, Sequence[bytes]]]
"""(task id, what the task refused, in order)."""


def in_order(attempts: Attempts, outcomes: Iterable[AttemptOutcome]) -> list[AttemptOutcome]:
    """Returns the outcomes of a wave in order; an attempt without an outcome has failed."""
    found = {outcome.attempt: outcome for outcome in outcomes}
    unknown = Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, "did not report on the attempt")
    return [found.get(attempt) or AttemptOutcome(attempt, unknown) for attempt in attempts]


def letters_of_group(
    attempts: Sequence[TransactionAttempt],
    outcomes: Mapping[TransactionAttempt, AttemptOutcome],
    reports: Sequence[TaskReport],
) -> Iterator[tuple[int, TaskLetters]]:
    """Yields the txid and the letters of each attempt that is published and has any.

    Args:
        attempts: a prefix of the group.
        outcomes: of their processing phase.
        reports: of all commit tasks, which may report on later attempts too.
    """
    for place, attempt in enumerate(attempts):
        found: TaskLetters = list(outcomes[attempt].letters.items())
        found += [(report.task_id, report.verdicts[place].letters) for report in reports]
        if any(letters for _, letters in found):
            yield attempt.txid, found
