"""The history of a topology, and one transaction of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.transaction_views import (
    TransactionsView,
    TransactionView,
    transaction_view,
    transactions_view,
)
from coordinator.operating.ui.views.words import Clock, Tone
from state.records.topology_overview import BriefTransaction, TransactionPage
from state.records.transaction_history import KnownTransaction, Receipt
from state.records.transaction_story import StoryChoice
from tests.support.dashboard.drawn import labels_of
from tests.support.dashboard.stored import MARKUP, NOW, failed_story, story

CLOCK = Clock(NOW)
HEADING = Heading("words", "running", Tone.GOOD, "on node7")
RECEIPT = Receipt(0x3F9, "416c", 33, 64)


def page(*rows: BriefTransaction, **changes: Any) -> TransactionPage:
    return replace(TransactionPage(42, 1, rows), **changes)


def view(found: TransactionPage, choice: StoryChoice = StoryChoice.ALL, before: int | None = None) -> TransactionsView:
    return transactions_view(HEADING, found, choice=choice, before=before, clock=CLOCK)


ALL, REPLAYED = StoryChoice.ALL, StoryChoice.REPLAYED
FORGOTTEN, KEPT = "Committed transactions are no longer kept: see --history.", "9 committed, kept from txid 1"
UNKNOWN = "Not recorded: the run ended too early or ran with --no-pulse, or the story is unreadable or no longer kept."
UNCOMMITTED = (
    "No failed attempt is recorded: none has failed, the run has not ended yet (txbatch status has its last failure), "
    "it was killed, or it ran with --no-pulse."
)


class TestHistory:
    def test_a_transaction_that_was_told(self) -> None:
        (row,) = view(page(BriefTransaction(42, RECEIPT, story(42)))).rows
        assert row.committed is not None
        assert row.committed.text == "2023-11-14 19:27:22"
        assert (row.txid, row.attempts, row.why, row.is_failed, row.tuples) == (42, "1", "", False, "500")
        assert (row.took, row.group, row.attempt_id, row.note) == ("410 ms", "33 to 64", "00000000000003f9", "")

    @pytest.mark.parametrize(("kind", "is_failed"), [("worker lost", True), ("lower failed", False)])
    def test_one_whose_attempt_failed_says_why_and_whether_by_itself(self, kind: str, is_failed: bool) -> None:
        (row,) = view(page(BriefTransaction(17, None, failed_story(17, kind)))).rows
        assert (row.attempts, row.why, row.is_failed, row.group) == ("2", kind, is_failed, "—")

    def test_one_that_was_not_told_has_its_receipt(self) -> None:
        (row,) = view(page(BriefTransaction(42, RECEIPT))).rows
        assert (row.committed, row.attempts, row.why, row.group) == (None, "—", "not reported", "33 to 64")
        assert view(page(BriefTransaction(42))).rows[0].why == "not kept"

    @pytest.mark.parametrize(
        ("changes", "note"),
        [
            ({"set_aside": True}, "set aside"),
            ({"republishes": 3}, "republishes 3"),
            ({"republished_letters": 5}, "republishes 5 dead letters"),
        ],
        ids=["set aside", "replay", "letters"],
    )
    def test_what_is_special_is_noted(self, changes: dict[str, Any], note: str) -> None:
        assert view(page(BriefTransaction(42, None, story(42, **changes)))).rows[0].note == note

    def test_pages_lead_to_each_other(self) -> None:
        found = page(BriefTransaction(42), next_before=42)
        assert (view(found).newest, view(found).older) == ("", "?before=42")
        later = view(found, StoryChoice.SET_ASIDE, before=90)
        assert (later.newest, later.older) == ("?show=set+aside", "?show=set+aside&before=42")
        assert [(tab.query, tab.is_current) for tab in later.tabs] == [
            *(("?", False), ("?show=failed", False)),
            *(("?show=replayed", False), ("?show=set+aside", True)),
        ]

    @pytest.mark.parametrize(
        ("found", "choice", "before", "none", "kept"),
        [
            (TransactionPage(0, 1), ALL, None, "Nothing is committed yet.", "0 committed, none kept"),
            (TransactionPage(9, 10), ALL, None, FORGOTTEN, "9 committed, none kept"),
            (TransactionPage(9, 1), REPLAYED, None, "No kept transaction was attempted more than once.", KEPT),
            (TransactionPage(9, 1), ALL, 1, "Nothing older is kept.", KEPT),
        ],
        ids=["new", "forgotten", "no replay", "the end"],
    )
    def test_an_empty_page_says_why(self, found, choice, before, none, kept) -> None:
        shown = view(found, choice, before)
        assert (shown.none, shown.kept) == (none, kept)


def known(**changes: Any) -> KnownTransaction:
    return replace(KnownTransaction(42, 80, history_from=1, receipt=RECEIPT), **changes)


def shown(found: KnownTransaction) -> TransactionView:
    return transaction_view(HEADING, found, CLOCK)


class TestOneTransaction:
    def test_what_is_exact_stands_apart_from_what_was_told(self) -> None:
        found = shown(known(story=story(42), metadata={"coordinator": ["/data", 1, 2]}))
        assert (found.state, found.tone, found.story) == (
            *("committed", Tone.GOOD),
            "Exactly once; the last committed one is 80.",
        )
        assert dict(found.exact) == {
            "attempt": "00000000000003f9",
            "group": "32 transactions, 33 to 64, in one commit",
            "digest": "416c",
        }
        assert dict(found.told) == {
            "cut": "2023-11-14 19:27:22",
            "input": "500 tuples by the spout, about 21.8 kB read",
            "processed": "after 300 ms",
            "committed": "after 410 ms",
            "commit call": "10.0 ms, 16.0 kB for the whole group",
        }
        assert found.contained == ("coordinator: ['/data', 1, 2]",)
        assert (found.previous, found.following) == (41, 43)

    def test_attempts_have_their_reasons(self) -> None:
        found = shown(known(story=failed_story(42)))
        assert [(row.end, row.tone, row.took) for row in found.attempts] == [
            ("worker lost", Tone.BAD, "9.80 s"),
            ("committed", Tone.GOOD, "1.00 s"),
        ]
        assert shown(known(story=failed_story(42, "lower failed"))).attempts[0].tone is Tone.WAITS
        assert found.attempts[0].reason == MARKUP.replace("\x1b", "\\x1b")
        assert found.chart is not None
        assert {"cut", "processed", "committed", "worker lost"} <= {label.text for label in labels_of(found.chart)}

    def test_nothing_of_a_batch_that_was_set_aside_was_published(self) -> None:
        assert shown(known(story=story(42))).flow_note == "of the committed attempt"
        aside = shown(known(story=story(42, set_aside=True), is_quarantined=True))
        assert (aside.flow_note, aside.quarantined) == ("of the last attempt; none of it was published", True)
        assert (aside.state, aside.tone, aside.story[:24]) == ("quarantined", Tone.BAD, "Its batch was set aside,")
        former = shown(known(story=story(42, set_aside=True)))
        assert (former.state, former.tone) == ("committed empty", Tone.WAITS)

    def test_attempts_that_are_no_longer_told_are_counted(self) -> None:
        assert shown(known(story=story(42, attempt_count=14))).attempts_note == "14 in all, the last 1 of them"

    def test_a_transaction_that_its_run_could_not_commit_is_told_without_a_commit(self) -> None:
        failed = replace(story(90), committed_at=0.0, sent_at=0.0)
        page = shown(known(txid=90, receipt=None, story=failed))
        assert page.state == "in flight"
        assert [name for name, _ in page.told] == ["cut", "committed"]
        assert page.told[-1] == ("committed", "not by the run that tells this")

    def test_a_replay_does_not_show_what_the_input_continues_from(self) -> None:
        page = shown(known(metadata={"coordinator": 1}, story=story(42, republished_letters=3)))
        assert (page.contained, page.contained_note[:22]) == ((), "Nothing of the input, ")

    def test_the_flow_is_by_edge_and_stream(self) -> None:
        (row,) = shown(known(story=story(42))).flow
        assert (row.taken, row.emitted, row.busy) == ((("lines/default", "500"),), (("default", "250"),), "14 ms")

    @pytest.mark.parametrize(
        ("found", "state", "tone", "contents", "untold"),
        [
            (
                known(receipt=None, history_from=50),
                *("committed", Tone.CALM, "No longer kept: the history begins at txid 50, see --history."),
                "Not kept.",
            ),
            (
                known(),
                *("committed", Tone.GOOD),
                "Not known: an opaque spout stores positions only of the last transaction of a group.",
                UNKNOWN,
            ),
            (known(history_from=None), *("committed", Tone.GOOD, "No longer kept: there is no history."), UNKNOWN),
            (known(txid=90, receipt=None, metadata={"coordinator": 1}), *("in flight", Tone.WAITS, "", UNCOMMITTED)),
            (known(txid=99, receipt=None), *("not cut", Tone.DIM, "Nothing is stored of it."), UNCOMMITTED),
        ],
        ids=["forgotten", "untold", "without history", "in flight", "not cut"],
    )
    def test_what_is_not_known_is_said(self, found, state, tone, contents, untold) -> None:
        page = shown(found)
        assert (page.state, page.tone, page.contained_note, page.untold) == (state, tone, contents, untold)
        assert page.chart is None

    def test_metadata_that_was_too_long_is_named(self) -> None:
        (line,) = shown(known(left_out={"partition.3": 5_000})).contained
        assert line == "partition.3: 5,000 bytes, too long to be kept"

    def test_the_newest_has_no_next_one(self) -> None:
        assert shown(known(txid=80)).following == 0
        assert shown(known(txid=1)).previous == 0
