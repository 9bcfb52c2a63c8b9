"""Dead letters and quarantined batches, as pages show them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.operating.ui.views.aside_views import letters_view, quarantine_view
from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.words import Clock, Tone
from state.commits.dead_letters import letter_of
from state.records.topology_overview import LettersShown
from tests.support.dashboard.stored import MARKUP, letter
from tests.support.stores.builders import record_of

HEADING = Heading("words", "running", Tone.GOOD, "")
LETTER = letter_of(17, letter(17, 0))
SAFE = MARKUP.replace("\x1b", "\\x1b")


def test_a_letter_says_who_refused_what_and_why_and_if_it_was_never_emitted() -> None:
    (row,) = letters_view(HEADING, LettersShown(1, (LETTER,))).rows
    assert (row.letter_id, row.refused_by, row.came_from) == ("17.0", "store[1]", "count/default")
    assert row.reason == f"no price {SAFE}"
    assert row.values[0] == ("word", "'naïve'")
    assert row.values[1][0] == SAFE
    assert "\x1b" not in row.values[1][1]
    (row,) = letters_view(HEADING, LettersShown(1, (replace(LETTER, stream_id=""),))).rows
    assert row.came_from == "never emitted"


@pytest.mark.parametrize(
    ("found", "newer", "older"),
    [
        (LettersShown(1, (LETTER,)), "", ""),
        (LettersShown(200, (LETTER,) * 50), "", "?from=50"),
        (LettersShown(200, (LETTER,) * 50, 100), "?from=50", "?from=150"),
        (LettersShown(200, (), 1_000), "?from=950", ""),
    ],
    ids=["the only page", "the first", "the third", "beyond the last"],
)
def test_pages_of_letters_lead_to_each_other(found: LettersShown, newer: str, older: str) -> None:
    shown = letters_view(HEADING, found)
    assert (shown.newer, shown.older) == (newer, older)


def test_a_batch_that_was_set_aside_says_where_and_why() -> None:
    newest, older = quarantine_view(HEADING, [record_of(30), record_of(31, positions={"p.1": 5})], Clock(10.0)).rows
    assert (newest.txid, older.txid) == (31, 30)
    assert (newest.place, newest.attempts, newest.reason) == ("parse[1]", "5", "ValueError: no number")
    assert newest.traceback == "Traceback\nValueError: no number"
    assert newest.at.text == "1970-01-01 00:00:01"
    assert newest.contained == ("coordinator: [31, 32]", "p.1: 5", "number 31 of the spout's batches")
