"""The history of a topology, and one transaction of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.transaction_views import transaction_view, transactions_view
from coordinator.operating.ui.views.words import Clock, Tone
from state.records.topology_overview import BriefTransaction, TransactionPage
from state.records.transaction_history import KnownTransaction, Receipt
from state.records.transaction_story import StoryChoice
from tests.support.approved import approved
from tests.support.dashboard.drawn import told
from tests.support.dashboard.stored import NOW, failed_story, story

CLOCK = Clock(NOW)
HEADING = Heading("words", "running", Tone.GOOD, "on node7")
RECEIPT = Receipt(0x3F9, "416c", 33, 64)


def page(*rows: BriefTransaction, **changes: Any) -> TransactionPage:
    return replace(TransactionPage(42, 1, rows), **changes)


def of_story(**changes: Any) -> TransactionPage:
    return page(BriefTransaction(42, None, story(42, **changes)))


ALL = StoryChoice.ALL
HISTORIES: dict[str, tuple[TransactionPage, StoryChoice, int | None]] = {
    "a transaction that was told": (page(BriefTransaction(42, RECEIPT, story(42))), ALL, None),
    "one that failed": (page(BriefTransaction(17, None, failed_story(17, "worker lost"))), ALL, None),
    "one that failed with a lower one": (page(BriefTransaction(17, None, failed_story(17, "lower failed"))), ALL, None),
    "one that was not told": (page(BriefTransaction(42, RECEIPT)), ALL, None),
    "one that is not kept": (page(BriefTransaction(42)), ALL, None),
    "set aside": (of_story(set_aside=True), ALL, None),
    "a replay": (of_story(republishes=3), ALL, None),
    "a replay of letters": (of_story(republished_letters=5), ALL, None),
    "the first of pages": (page(BriefTransaction(42), next_before=42), ALL, None),
    "a later page of what was set aside": (page(BriefTransaction(42), next_before=42), StoryChoice.SET_ASIDE, 90),
    "new": (TransactionPage(0, 1), ALL, None),
    "forgotten": (TransactionPage(9, 10), ALL, None),
    "no replay": (TransactionPage(9, 1), StoryChoice.REPLAYED, None),
    "the end": (TransactionPage(9, 1), ALL, 1),
}


def test_a_history_says_what_became_of_each_transaction_and_leads_to_its_other_pages() -> None:
    said = []
    for name, (found, choice, before) in HISTORIES.items():
        view = transactions_view(HEADING, found, choice=choice, before=before, clock=CLOCK)
        said += [f"== {name}", *told(view)]
    approved("\n".join(said), "dashboard-histories")


def known(**changes: Any) -> KnownTransaction:
    return replace(KnownTransaction(42, 80, history_from=1, receipt=RECEIPT), **changes)


TRANSACTIONS = {
    "committed": known(story=story(42), metadata={"coordinator": ["/data", 1, 2]}),
    "failed before": known(story=failed_story(42)),
    "failed with a lower one": known(story=failed_story(42, "lower failed")),
    "quarantined": known(story=story(42, set_aside=True), is_quarantined=True),
    "once quarantined": known(story=story(42, set_aside=True)),
    "many attempts": known(story=story(42, attempt_count=14)),
    "could not be committed by its run": known(
        txid=90, receipt=None, story=replace(story(90), committed_at=0.0, sent_at=0.0)
    ),
    "a replay of letters": known(metadata={"coordinator": 1}, story=story(42, republished_letters=3)),
    "forgotten": known(receipt=None, history_from=50),
    "untold": known(),
    "without history": known(history_from=None),
    "in flight": known(txid=90, receipt=None, metadata={"coordinator": 1}),
    "not cut": known(txid=99, receipt=None),
    "metadata that is too long": known(left_out={"partition.3": 5_000}),
    "the newest": known(txid=80),
    "the oldest": known(txid=1),
}


def test_a_transaction_shows_what_is_exact_apart_from_what_was_told_and_says_what_is_not_known() -> None:
    said = []
    for name, found in TRANSACTIONS.items():
        said += [f"== {name}", *told(transaction_view(HEADING, found, CLOCK))]
    approved("\n".join(said), "dashboard-transactions")
