"""The record of one transaction in words, for the command line and the dashboard. Pure."""

from __future__ import annotations

from coordinator.operating.inspection.wording import WordsByScope, words_or_values
from state.printable import counted
from state.records.transaction_history import KnownTransaction, Receipt
from state.records.transaction_story import TransactionStory

COMMITTED, IN_FLIGHT, NOT_CUT = "committed", "in flight", "not cut"
QUARANTINED, COMMITTED_EMPTY = "quarantined", "committed empty"


def state_of(known: KnownTransaction) -> tuple[str, str]:
    """Returns the state of a transaction: in a word or two, and in a sentence."""
    last = f"the last committed one is {known.committed_txid:,}"
    if not known.is_committed:
        if known.metadata or known.story is not None:
            return IN_FLIGHT, f"cut, and not committed; {last}"
        return NOT_CUT, f"not cut yet, as far as is stored; {last}"
    if known.is_quarantined:
        return QUARANTINED, f"its batch was set aside, and it was committed empty; {last}"
    if known.story is not None and known.story.set_aside:
        return COMMITTED_EMPTY, f"its batch had been quarantined, and was republished or discarded; {last}"
    if known.is_forgotten:
        return COMMITTED, f"exactly once; nothing else is kept of it any more{_begins(known)}"
    return COMMITTED, f"exactly once; {last}"


def contents_of(known: KnownTransaction, words: WordsByScope) -> tuple[list[str], str]:
    """Returns the input of a transaction, as lines, and a reason if there is no line."""
    if known.is_republication:
        return [], "nothing of the input, which continues after it: it published what had been set aside"
    found = words_or_values(known.metadata, words)
    found += [f"{scope}: {size:,} bytes, too long to be kept" for scope, size in sorted(known.left_out.items())]
    if found:
        return found, ""
    if not known.is_committed:
        return [], "nothing is stored of it"
    if known.is_forgotten or known.history_from is None or known.txid < known.history_from:
        return [], f"no longer kept{_begins(known)}"
    return [], "not known: an opaque spout stores positions only of the last transaction of a group"


def group_of(receipt: Receipt) -> str:
    """Returns in words which transactions were committed together."""
    count = receipt.last_txid - receipt.first_txid + 1
    if count == 1:
        return "committed alone"
    return f"{counted(count, 'transaction')}, {receipt.first_txid:,} to {receipt.last_txid:,}, in one commit"


def why_without_story(known: KnownTransaction) -> str:
    if known.is_forgotten:
        return "not kept"
    if not known.is_committed:
        return (
            "no failed attempt is recorded: none has failed, the run has not ended yet (`txbatch status` has its last "
            "failure), it was killed, or it ran with --no-pulse"
        )
    return "not recorded: the run ended too early or ran with --no-pulse, or the story is unreadable or no longer kept"


def specials_of(story: TransactionStory) -> list[tuple[str, str]]:
    """Returns (name, text) of anything unusual about a committed transaction."""
    shown = [("set aside", "it was committed empty, because its batch failed on every attempt")]
    shown = shown if story.set_aside else []
    if story.republishes:
        shown.append(("republishes", f"quarantined txid {story.republishes:,}"))
    if story.republished_letters:
        shown.append(("republishes", counted(story.republished_letters, "dead letter")))
    return shown


def _begins(known: KnownTransaction) -> str:
    if known.history_from is None:
        return ": there is no history"
    return f": the history begins at txid {known.history_from:,}, see --history"
