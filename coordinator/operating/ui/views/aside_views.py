"""The pages of dead letters and of quarantined batches, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.operating.inspection.wording import words_by_scope, words_or_values
from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.words import Clock, ShownTime
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE
from state.commits.dead_letters import DeadLetter
from state.commits.quarantine import QuarantineRecord
from state.printable import block
from state.records.topology_overview import LettersShown

PAGE = 50
_VALUE_LIMIT = 300
_TRACEBACK_LINES = 60


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A refused tuple; `letter_id` is its id in `txbatch dead-letters`."""

    letter_id: str
    txid: int
    refused_by: str
    came_from: str
    reason: str
    values: tuple[tuple[str, str], ...]  # with their names


@dataclass(frozen=True, slots=True)
class LettersView:
    """A page of dead letters; `stored` is their total number, `newer` and `older` are queries of other pages or ""."""

    heading: Heading
    stored: str
    rows: tuple[LetterRow, ...]
    newer: str
    older: str


def letters_view(heading: Heading, found: LettersShown) -> LettersView:
    """Returns a page of dead letters."""
    following = found.offset + len(found.letters)
    newer = f"?from={max(0, found.offset - PAGE)}" if found.offset else ""
    older = f"?from={following}" if found.letters and following < found.stored_count else ""
    return LettersView(heading, words.count(found.stored_count), tuple(map(_letter_row, found.letters)), newer, older)


def _letter_row(letter: DeadLetter) -> LetterRow:
    came_from = f"{words.name(letter.source_component)}/{words.name(letter.stream_id)}"
    pairs = zip(letter.fields, letter.values, strict=False)
    return LetterRow(
        letter_id=letter.letter_id,
        txid=letter.txid,
        refused_by=f"{words.name(letter.component_id)}[{letter.task_index}]",
        came_from=came_from if letter.stream_id else "never emitted",
        reason=words.reason(letter.reason),
        values=tuple((words.name(str(field)), words.value(value, _VALUE_LIMIT)) for field, value in pairs),
    )


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A quarantined batch; `txid` is the transaction that was committed empty in its place."""

    txid: int
    at: ShownTime
    place: str
    attempts: str
    reason: str  # reason, tuple and traceback are of the last failure; "" without one
    tuple_text: str
    traceback: str
    contained: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuarantineView:
    heading: Heading
    rows: tuple[QuarantineRow, ...]


def quarantine_view(heading: Heading, found: Sequence[QuarantineRecord], clock: Clock) -> QuarantineView:
    """Returns the page of quarantined batches."""
    return QuarantineView(heading, tuple(_quarantine_row(record, clock) for record in reversed(found)))


def _quarantine_row(record: QuarantineRecord, clock: Clock) -> QuarantineRow:
    cause, batch = record.cause, record.batch
    metadata = {COORDINATOR_SCOPE: batch.metadata, **batch.positions}
    contained = words_or_values(metadata, words_by_scope(record.source_fingerprint, metadata))
    contained += [f"began at {scope}: {words.value(at)}" for scope, at in sorted(batch.starts.items())]
    contained.append(f"number {batch.number:,} of the spout's batches")
    return QuarantineRow(
        txid=record.txid,
        at=clock.shown(record.set_aside_at_s),
        place=words.name(cause.place),
        attempts=words.count(cause.attempt_count),
        reason=words.reason(cause.reason),
        tuple_text=words.reason(cause.tuple_text),
        traceback=block(cause.traceback_text, lines_max=_TRACEBACK_LINES).rstrip() if cause.traceback_text else "",
        contained=tuple(words.line(each) for each in contained),
    )
