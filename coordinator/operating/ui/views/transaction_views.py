"""The pages of transactions: the history of a topology, newest first, and one transaction with all its records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from coordinator.operating.inspection.known_transaction import (
    COMMITTED,
    COMMITTED_EMPTY,
    IN_FLIGHT,
    NOT_CUT,
    QUARANTINED,
    contents_of,
    group_of,
    specials_of,
    state_of,
    why_without_story,
)
from coordinator.operating.inspection.wording import words_by_scope
from coordinator.operating.ui.svg_charts import AttemptBar, Mark, Svg, attempt_chart
from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.words import UNKNOWN, Clock, ShownTime, Tone
from coordinator.watching.durations import brief
from state.printable import counted
from state.records.topology_overview import BriefTransaction, TransactionPage
from state.records.transaction_history import KnownTransaction
from state.records.transaction_story import LOWER_FAILED, AttemptStory, ComponentStory, StoryChoice, TransactionStory

CHOICES = {
    StoryChoice.ALL: "All",
    StoryChoice.FAILED: "Failed themselves",
    StoryChoice.REPLAYED: "Replayed",
    StoryChoice.SET_ASIDE: "Set aside",
}
_TONES = {
    COMMITTED: Tone.GOOD,
    COMMITTED_EMPTY: Tone.WAITS,
    QUARANTINED: Tone.BAD,
    IN_FLIGHT: Tone.WAITS,
    NOT_CUT: Tone.DIM,
}
_NONE = {
    StoryChoice.ALL: "Nothing is committed yet.",
    StoryChoice.FAILED: "No kept transaction failed for a reason of its own.",
    StoryChoice.REPLAYED: "No kept transaction was attempted more than once.",
    StoryChoice.SET_ASIDE: "No kept transaction was set aside.",
}


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    query: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A committed transaction.

    Attributes:
        group, attempt_id: from its receipt; the other fields are from its run's reports.
        why: why earlier attempts failed, or that nothing was reported.
        is_failed: whether an attempt failed for a reason of its own.
        took: time from the first cut to the commit.
    """

    txid: int
    group: str
    attempt_id: str
    why: str
    committed: ShownTime | None = None
    attempts: str = UNKNOWN
    is_failed: bool = False
    tuples: str = UNKNOWN
    took: str = UNKNOWN
    note: str = ""


@dataclass(frozen=True, slots=True)
class TransactionsView:
    """A page of the history; `kept` says which transactions are kept, `none` why there are no rows."""

    heading: Heading
    tabs: tuple[Tab, ...]
    rows: tuple[TransactionRow, ...]
    kept: str
    none: str
    newest: str  # queries of other pages, "" if there is none
    older: str


def transactions_view(
    heading: Heading, page: TransactionPage, *, choice: StoryChoice, before: int | None, clock: Clock
) -> TransactionsView:
    """Returns a page of the history: the chosen transactions below `before`, or the newest ones."""
    return TransactionsView(
        heading=heading,
        tabs=tuple(Tab(text, _query(each), each is choice) for each, text in CHOICES.items()),
        rows=tuple(_row(each, clock) for each in page.rows),
        kept=_kept(page),
        none="" if page.rows else _none(page, choice, before),
        newest=_query(choice) if before is not None else "",
        older="" if page.next_before is None else _query(choice, page.next_before),
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
    if story is None or not story.committed_at:  # failures of an earlier run do not describe the commit
        return TransactionRow(found.txid, group, attempt_id, why="not kept" if receipt is None else "not reported")
    kinds = list(dict.fromkeys(words.name(each.failed) for each in story.attempts if each.failed))
    notes = ["set aside"] if story.set_aside else []
    notes += [f"republishes {story.republishes:,}"] if story.republishes else []
    notes += [f"republishes {counted(story.republished_letters, 'dead letter')}"] if story.republished_letters else []
    refused = sum(done.dead_letters for done in story.components.values())
    notes += [f"{refused:,} refused"] if refused else []
    return TransactionRow(
        found.txid,
        group,
        attempt_id,
        why=", ".join(kinds),
        committed=clock.shown(story.committed_at),
        attempts=words.count(story.attempt_count),
        is_failed=StoryChoice.FAILED.is_wanted(story),
        tuples=words.count(story.tuples),
        took=_since(story.cut_at, story.committed_at),
        note=", ".join(notes),
    )


def _since(begin: float, end: float) -> str:
    return brief(max(0.0, end - begin))


@dataclass(frozen=True, slots=True)
class AttemptRow:
    attempt_id: str
    wave: str
    began: str
    took: str
    end: str
    tone: Tone
    reason: str


@dataclass(frozen=True, slots=True)
class FlowRow:
    """The figures of a component for one attempt."""

    name: str
    taken: tuple[tuple[str, str], ...]  # by edge
    emitted: tuple[tuple[str, str], ...]  # by stream
    refused: str
    busy: str


@dataclass(frozen=True, slots=True)
class TransactionView:
    """One transaction.

    Attributes:
        state, story: its state, in a word and in a sentence.
        exact: (name, text) of facts that the commit has stored.
        contained: its input, in the words of its source; contained_note says why it is empty.
        previous, following: txids of its neighbours; 0 for none.
        reported, attempts, chart, flow: from its run's reports; `why_unreported` says why there are none.
        attempts_note: whether these are only the last attempts.
        flow_note: which attempt the flow is of.
        quarantined: whether its batch is in the quarantine.
    """

    heading: Heading
    txid: int
    state: str
    tone: Tone
    story: str
    exact: tuple[tuple[str, str], ...]
    contained: tuple[str, ...]
    contained_note: str
    previous: int
    following: int
    quarantined: bool
    why_unreported: str = ""
    reported: tuple[tuple[str, str], ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    attempts_note: str = ""
    chart: Svg | None = None
    flow: tuple[FlowRow, ...] = ()
    flow_note: str = ""


def transaction_view(heading: Heading, known: KnownTransaction, clock: Clock) -> TransactionView:
    """Returns the page of a transaction."""
    (state, said), read = state_of(known), {} if known.is_republication else known.metadata
    contained, why_nothing = contents_of(known, words_by_scope(known.source_fingerprint, read))
    newest = max(known.committed_txid, known.txid if known.metadata else 0)
    view = TransactionView(
        heading=heading,
        txid=known.txid,
        state=state,
        tone=Tone.CALM if known.is_forgotten else _TONES[state],
        story=words.sentence(said),
        exact=_exact(known),
        contained=tuple(words.line(each) for each in contained),
        contained_note=words.sentence(why_nothing),
        previous=known.txid - 1,
        following=known.txid + 1 if known.txid < newest else 0,
        quarantined=known.is_quarantined,
    )
    story = known.story
    if story is None:
        return replace(view, why_unreported=words.sentence(why_without_story(known)))
    return replace(
        view,
        reported=_reported(story, clock),
        attempts=tuple(_attempt(each, clock) for each in story.attempts),
        attempts_note=_attempts_note(story),
        chart=_chart(known.txid, story),
        flow=tuple(_flow(name, done) for name, done in story.components.items()),
        flow_note="of the last attempt; none of it was published" if story.set_aside else "of the committed attempt",
    )


def _exact(known: KnownTransaction) -> tuple[tuple[str, str], ...]:
    if known.receipt is None:
        return ()
    receipt = known.receipt
    digest = words.name(receipt.digest)
    return ("attempt", f"{receipt.attempt_id:016x}"), ("group", group_of(receipt)), ("digest", digest)


def _reported(story: TransactionStory, clock: Clock) -> tuple[tuple[str, str], ...]:
    size = f", about {words.size(story.input_bytes)} read" if story.input_bytes else ""
    shown = [
        ("cut", clock.shown(story.cut_at).text),
        ("input", f"{counted(story.tuples, 'tuple')} by the spout{size}"),
    ]
    if story.processed_at:
        shown.append(("processed", f"after {_since(story.cut_at, story.processed_at)}"))
    if not story.committed_at:
        return (shown[0], ("committed", "not by the run that tells this"))
    shown.append(("committed", f"after {_since(story.cut_at, story.committed_at)}"))
    call = _since(story.sent_at, story.committed_at)
    shown.append(("commit call", f"{call}, {words.size(story.group_bytes)} for the whole group"))
    return (*shown, *specials_of(story))


def _attempts_note(story: TransactionStory) -> str:
    if story.attempt_count > len(story.attempts):
        return f"{story.attempt_count:,} in all, the last {len(story.attempts)} of them"
    return ""


def _attempt(attempt: AttemptStory, clock: Clock) -> AttemptRow:
    return AttemptRow(
        attempt_id=words.name(attempt.attempt_id),
        wave=words.count(attempt.wave),
        began=clock.time_of_day(attempt.started_at),
        took=_since(attempt.started_at, attempt.ended_at) if attempt.ended_at else UNKNOWN,
        end=words.name(attempt.failed) or "committed",
        tone=_tone(attempt),
        reason=words.reason(attempt.reason),
    )


def _tone(attempt: AttemptStory) -> Tone:
    if not attempt.failed:
        return Tone.GOOD
    return Tone.WAITS if attempt.failed == LOWER_FAILED else Tone.BAD


def _chart(txid: int, story: TransactionStory) -> Svg | None:
    bars = [
        AttemptBar(
            name=words.name(each.attempt_id)[:8],
            begin=each.started_at,
            end=max(each.started_at, each.ended_at),
            kind=_tone(each).value,
            note=words.name(each.failed) or "committed",
        )
        for each in story.attempts
    ]
    marks = [Mark("cut", story.cut_at), Mark("processed", story.processed_at), Mark("committed", story.committed_at)]
    known = [mark for mark in marks if mark.at]
    return attempt_chart(f"attempts at transaction {txid:,}", bars, known, said=brief)


def _flow(name: str, done: ComponentStory) -> FlowRow:
    return FlowRow(
        name=words.name(name),
        taken=tuple((words.name(edge), words.count(number)) for edge, number in sorted(done.tuples_in.items())),
        emitted=tuple((words.name(stream), words.count(number)) for stream, number in sorted(done.tuples_out.items())),
        refused=words.count(done.dead_letters),
        busy=brief(done.busy_ms / 1000),
    )
