"""The page of a topology's history: committed transactions, the newest first."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.words import UNKNOWN, Clock, ShownTime
from coordinator.watching.durations import brief
from state.records.topology_overview import BriefTransaction, TransactionPage
from state.records.transaction_story import StoryChoice

CHOICES = {
    StoryChoice.ALL: "All",
    StoryChoice.FAILED: "Failed themselves",
    StoryChoice.REPLAYED: "Replayed",
    StoryChoice.SET_ASIDE: "Set aside",
}
_NONE = {
    StoryChoice.ALL: "Nothing is committed yet.",
    StoryChoice.FAILED: "No kept transaction failed for a reason of its own.",
    StoryChoice.REPLAYED: "No kept transaction was attempted more than once.",
    StoryChoice.SET_ASIDE: "No kept transaction was set aside.",
}


@dataclass(frozen=True, slots=True)
class Tab:
    """A choice of transactions."""

    name: str
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A committed transaction.

    Attributes:
        txid: its number.
        committed: when; None if it was not told.
        attempts: how many; "—" if it was not told.
        why: why earlier ones failed, "" if none did, or that nothing was told.
        is_failed: one of them failed for a reason of its own.
        tuples, took: by the spout; from the first cut to the commit.
        group: the txids of its commit.
        attempt_id: of the attempt that was committed.
        note: that it was set aside, or is a replay.
    """

    txid: int
    committed: ShownTime | None
    attempts: str
    why: str
    is_failed: bool
    tuples: str
    took: str
    group: str
    attempt_id: str
    note: str


@dataclass(frozen=True, slots=True)
class TransactionsView:
    """A page of the history.

    Attributes:
        heading: of the topology.
        tabs: the choices.
        rows: the transactions.
        kept: which transactions are kept.
        none: the text shown if there are no rows.
        newest, older: queries of other pages; "" if there is none.
        is_newest: whether this is the first page, to which new transactions are added.
        choice: the current one, as in an address.
    """

    heading: Heading
    tabs: tuple[Tab, ...]
    rows: tuple[TransactionRow, ...]
    kept: str
    none: str
    newest: str
    older: str
    is_newest: bool
    choice: str


def transactions_view(
    heading: Heading, page: TransactionPage, *, choice: StoryChoice, before: int | None, clock: Clock
) -> TransactionsView:
    """Returns a page of the history.

    Args:
        heading: of the topology.
        page: what was found.
        choice: which transactions were asked for.
        before: below which txid.
        clock: of the page.
    """
    older = "" if page.next_before is None else _query(choice, page.next_before)
    return TransactionsView(
        heading=heading,
        tabs=tuple(Tab(text, _query(each), each is choice) for each, text in CHOICES.items()),
        rows=tuple(_row(each, clock) for each in page.rows),
        kept=_kept(page),
        none="" if page.rows else _none(page, choice, before),
        newest=_query(choice) if before is not None else "",
        older=older,
        is_newest=before is None,
        choice=choice.value,
    )


def _query(choice: StoryChoice, before: int | None = None) -> str:
    asked = {} if choice is StoryChoice.ALL else {"show": choice.value}
    return f"?{urlencode(asked if before is None else asked | {'before': str(before)})}".rstrip("?") or "?"


def _kept(page: TransactionPage) -> str:
    if page.first_kept > page.committed_txid:
        return f"{page.committed_txid:,} committed, none kept"
    return f"{page.committed_txid:,} committed, kept from txid {page.first_kept:,}"


def _none(page: TransactionPage, choice: StoryChoice, before: int | None) -> str:
    if before is not None:
        return "Nothing older is kept."
    if choice is StoryChoice.ALL and page.committed_txid:
        return "Committed transactions are no longer kept: see --history."
    return _NONE[choice]


def _row(found: BriefTransaction, clock: Clock) -> TransactionRow:
    receipt, story = found.receipt, found.story
    group, attempt_id = UNKNOWN, ""
    if receipt is not None:
        attempt_id = f"{receipt.attempt_id:016x}"
        is_alone = receipt.first_txid == receipt.last_txid
        group = "alone" if is_alone else f"{receipt.first_txid:,} to {receipt.last_txid:,}"
    if story is None or not story.committed_at:  # what an earlier run told of its failure says nothing of the commit
        why = "not told" if receipt is not None else "not kept"
        return TransactionRow(found.txid, None, UNKNOWN, why, False, UNKNOWN, UNKNOWN, group, attempt_id, "")
    kinds = list(dict.fromkeys(words.name(each.failed) for each in story.attempts if each.failed))
    notes = ["set aside"] if story.set_aside else []
    notes += [f"replay of {story.replay_of:,}"] if story.replay_of else []
    notes += [f"replay of {story.replayed_letters:,} dead letters"] if story.replayed_letters else []
    refused = sum(done.dead_letters for done in story.components.values())
    notes += [f"{refused:,} refused"] if refused else []
    return TransactionRow(
        txid=found.txid,
        committed=clock.shown(story.committed_at),
        attempts=words.count(story.attempt_count),
        why=", ".join(kinds),
        is_failed=StoryChoice.FAILED.is_wanted(story),
        tuples=words.count(story.tuples),
        took=brief(max(0.0, story.committed_at - story.cut_at)),
        group=group,
        attempt_id=attempt_id,
        note=", ".join(notes),
    )
