"""The dead letters of a group that is published. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from state.attempt import TransactionAttempt

TaskLetters = list[tuple[int, Sequence[bytes]]]
"""(task id, what the task refused, in order)."""


def letters_of_group(
    attempts: Sequence[TransactionAttempt],
    outcomes: Mapping[TransactionAttempt, AttemptResult],
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
        for report in reports:
            found += report.results[place].letters.items()
        if found:
            yield attempt.txid, found
