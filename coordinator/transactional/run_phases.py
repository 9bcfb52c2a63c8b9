"""What the run machine has begun and not ended: a round of cutting, a group in its commit phase. Plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from committers import Publish, SlotReport
from coordinator.engine import GroupExecuted
from coordinator.transactional.attempt_record import AttemptRecord
from state import TransactionAttempt


@dataclass(slots=True)
class CommitPhase:
    """The group whose turn it is.

    Attributes:
        attempts: those the commit phase runs for now.
        asked: how many there were at first.
        started_s: when it began, or was last found to take too long.
        is_early: it has run in the wave's job, and the engine knows nothing of it.
        publishing: what was sent to the store and not answered yet.
        reports: what the commit tasks said of what was sent.
    """

    attempts: tuple[TransactionAttempt, ...]
    asked: int
    started_s: float
    is_early: bool = False
    publishing: Publish | None = None
    reports: tuple[SlotReport, ...] = ()


@dataclass(slots=True)
class CuttingRound:
    """One turn of cutting: what was cut in it, and the group that has run early and is dealt with at its end."""

    cut: dict[int, Any] = field(default_factory=dict)
    early: GroupExecuted | None = None


def validate_phase(phase: CommitPhase | None, committing: Iterable[AttemptRecord]) -> None:
    """Checks that the group whose turn it is and the attempts in their commit phase agree.

    Raises:
        AssertionError: they do not.
    """
    records = sorted(committing, key=lambda record: record.attempt)
    assert len({record.wave_id for record in records}) <= 1, "a group of two waves"
    found = tuple(record.attempt for record in records)
    if phase is None:
        assert not found, "attempts commit without a group"
    elif phase.publishing is not None:
        assert found == phase.publishing.attempts, "the group that was sent is not the one that publishes"
    else:
        assert found == phase.attempts, "the group that runs is not the one that commits"
