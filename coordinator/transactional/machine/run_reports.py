"""Prepares the reports of engines for the run machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.machine.run_events import Attempts


def in_order(attempts: Attempts, outcomes: Iterable[AttemptOutcome]) -> list[AttemptOutcome]:
    """Returns the outcomes of a wave in order; an attempt without an outcome has failed."""
    found = {outcome.attempt: outcome for outcome in outcomes}
    unknown = Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, "did not report on the attempt")
    return [found.get(attempt) or AttemptOutcome(attempt, unknown) for attempt in attempts]
