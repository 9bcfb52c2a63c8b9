"""The group in its commit phase, and the dead letters that it publishes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from committers.group_commit import PublishStep
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.engine import GroupExecuted
from coordinator.transactional.machine.poison import Poison
from coordinator.transactional.machine.transaction_record import ActiveAttempt
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


@dataclass(slots=True)
class CommitPhase:
    """The group in its commit phase.

    Attributes:
        attempts: those for which the commit phase currently runs.
        asked: how many there were at first.
        started_s: when it began, or was last found to take too long.
        ran_early: what was reported of it, if it ran in the wave's job; the engine then runs nothing for it.
        publishing: what was sent to the store and is not answered yet.
        reports: of the commit tasks, about what was sent.
        poison: the batch that is set aside by what was sent.
    """

    attempts: tuple[TransactionAttempt, ...]
    asked: int
    started_s: float
    ran_early: GroupExecuted | None = None
    publishing: PublishStep | None = None
    reports: tuple[TaskReport, ...] = ()
    poison: Poison | None = None


def validate_phase(phase: CommitPhase | None, committing: Iterable[ActiveAttempt]) -> None:
    """Checks that the group and the attempts in their commit phase agree.

    Raises:
        AssertionError: they disagree.
    """
    records = sorted(committing, key=lambda record: record.attempt)
    assert len({record.wave_id for record in records}) <= 1, "a group of two waves"
    found = tuple(record.attempt for record in records)
    if phase is None:
        assert not found, "attempts commit without a group"
        return
    if phase.publishing is not None:
        assert found == phase.publishing.attempts, "the group that was sent is not the one that publishes"
    else:
        assert found == phase.attempts, "the group that runs is not the one that commits"
