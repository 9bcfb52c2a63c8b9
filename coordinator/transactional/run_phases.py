"""What the run machine has begun and not ended: a round of cutting, a group in its commit phase. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from committers import Publish, SlotReport
from coordinator.engine import GroupExecuted
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
