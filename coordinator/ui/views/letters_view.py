"""The page of a topology's dead letters: the tuples that were refused, the newest transactions first."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.ui.views import words
from coordinator.ui.views.heading import Heading
from state.commits.dead_letters import DeadLetter
from state.records.topology_overview import LettersShown

PAGE = 50
_VALUE_LIMIT = 300


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A refused tuple.

    Attributes:
        letter_id: as `txbatch dead-letters` names it.
        txid: its transaction.
        refused_by: component and task.
        came_from: component and stream that emitted it, or that it was never emitted.
        reason: why it was refused.
        values: names and values.
    """

    letter_id: str
    txid: int
    refused_by: str
    came_from: str
    reason: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LettersView:
    """A page of dead letters.

    Attributes:
        heading: of the topology.
        stored: how many there are.
        rows: some of them.
        newer, older: queries of other pages; "" if there is none.
    """

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
    return LettersView(heading, words.count(found.stored_count), tuple(map(_row, found.letters)), newer, older)


def _row(letter: DeadLetter) -> LetterRow:
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
