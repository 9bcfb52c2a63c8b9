"""What engines report of a wave or a group, read the way the run machine needs it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from committers import SlotReport
from coordinated_bolt import ACKER_COMPONENT, AttemptOutcome, Failure, FailureKind, TaskMetrics
from coordinator.transactional.run_events import Attempts


def in_order(attempts: Attempts, outcomes: Iterable[AttemptOutcome]) -> list[AttemptOutcome]:
    """The outcomes of a wave in order; one that is missing means unknown, never done."""
    found = {outcome.attempt: outcome for outcome in outcomes}
    unknown = Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, "gave no verdict")
    return [found.get(attempt) or AttemptOutcome(attempt, unknown) for attempt in attempts]


def work_done(reports: Iterable[SlotReport], places: slice) -> Iterator[tuple[str, TaskMetrics]]:
    """What commit tasks did for the attempts at these places of a group."""
    for report in reports:
        for verdict in report.verdicts[places]:
            yield report.component_id, verdict.metrics
