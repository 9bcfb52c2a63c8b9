"""The page of a topology's quarantine: the batches that failed on every attempt, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.inspection.wording import words_by_scope, words_or_values
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE
from coordinator.ui.views import words
from coordinator.ui.views.clock import Clock, Moment
from coordinator.ui.views.heading import Heading
from state.commits.quarantine import QuarantineRecord
from state.printable import block

_TRACEBACK_LINES = 60


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A batch that was set aside.

    Attributes:
        txid: of the transaction that was committed empty in its place.
        at: when.
        place: component and task that failed.
        attempts: how many were made.
        reason: what the last failure said.
        tuple_text: the tuple at which it failed, "" if it was none.
        traceback: lines of the user's traceback, "" if there is none.
        contained: what re-creates the batch, a line each.
    """

    txid: int
    at: Moment
    place: str
    attempts: str
    reason: str
    tuple_text: str
    traceback: str
    contained: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuarantineView:
    """The quarantine of a topology, the newest first."""

    heading: Heading
    rows: tuple[QuarantineRow, ...]


def quarantine_view(heading: Heading, found: Sequence[QuarantineRecord], clock: Clock) -> QuarantineView:
    """Returns the quarantine."""
    return QuarantineView(heading, tuple(_row(record, clock) for record in reversed(found)))


def _row(record: QuarantineRecord, clock: Clock) -> QuarantineRow:
    cause, batch = record.cause, record.batch
    metadata = {COORDINATOR_SCOPE: batch.metadata, **batch.positions}
    contained = words_or_values(metadata, words_by_scope(record.source_fingerprint, metadata))
    contained += [f"began at {scope}: {words.value(at)}" for scope, at in sorted(batch.starts.items())]
    contained.append(f"number {batch.number:,} of the spout's batches")
    return QuarantineRow(
        txid=record.txid,
        at=clock.moment(record.set_aside_at_s),
        place=f"{words.name(cause.component_id)}[{cause.task_index}]" if cause.component_id else "no known component",
        attempts=words.count(cause.attempt_count),
        reason=words.reason(cause.reason),
        tuple_text=words.reason(cause.tuple_text),
        traceback=block(cause.traceback_text, lines_max=_TRACEBACK_LINES).rstrip() if cause.traceback_text else "",
        contained=tuple(words.line(each) for each in contained),
    )
