"""The page of one transaction: what it contained, its attempts and why they failed, counts, receipt and times."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.operating.inspection.wording import words_by_scope, words_or_values
from coordinator.operating.ui.svg_charts import AttemptBar, Mark, Svg, attempt_chart
from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.topologies_view import Heading
from coordinator.operating.ui.views.words import Clock, Tone
from coordinator.watching.durations import brief
from state.printable import counted
from state.records.transaction_history import KnownTransaction
from state.records.transaction_story import LOWER_FAILED, AttemptStory, ComponentStory, TransactionStory


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt at the transaction.

    Attributes:
        attempt_id: its id.
        wave: of the run.
        began, took: when, and how long it took.
        end, tone: how it ended.
        reason: what the failure said.
    """

    attempt_id: str
    wave: str
    began: str
    took: str
    end: str
    tone: Tone
    reason: str


@dataclass(frozen=True, slots=True)
class FlowRow:
    """What a component did for the committed attempt.

    Attributes:
        name: its id.
        taken, emitted: tuples by the edge they arrived on, and by stream.
        refused: dead letters.
        busy: time of its tasks.
    """

    name: str
    taken: tuple[tuple[str, str], ...]
    emitted: tuple[tuple[str, str], ...]
    refused: str
    busy: str


@dataclass(frozen=True, slots=True)
class TransactionView:
    """One transaction.

    Attributes:
        heading: of its topology.
        txid: its number.
        state, tone: how far it is.
        story: that state in a sentence.
        exact: what the commit itself has kept: names and texts.
        told: what the run has told, likewise.
        contained: what it was cut from, in the words of its source, a line each.
        contained_note: why there is none of it, "" if there is.
        untold: why nothing was told, "" if something was.
        attempts: the last of them; attempts_note says if there were more.
        chart: of the attempts, None if nothing was told.
        flow: what components did, for the attempt that flow_note names.
        previous, following: txids of its neighbours; 0 for none.
        quarantined: its batch is in the quarantine.
    """

    heading: Heading
    txid: int
    state: str
    tone: Tone
    story: str
    exact: tuple[tuple[str, str], ...]
    told: tuple[tuple[str, str], ...] = ()
    contained: tuple[str, ...] = ()
    contained_note: str = ""
    untold: str = ""
    attempts: tuple[AttemptRow, ...] = ()
    attempts_note: str = ""
    chart: Svg | None = None
    flow: tuple[FlowRow, ...] = ()
    flow_note: str = ""
    previous: int = 0
    following: int = 0
    quarantined: bool = False


def transaction_view(heading: Heading, known: KnownTransaction, clock: Clock) -> TransactionView:
    """Returns the page of a transaction."""
    state, tone, sentence = _state(known)
    told = known.story
    read = {} if known.is_replay else known.metadata
    contained = words_or_values(read, words_by_scope(known.source_fingerprint, read))
    contained += [f"{scope}: {size:,} bytes, too long to be kept" for scope, size in sorted(known.left_out.items())]
    newest = max(known.committed_txid, known.txid if known.metadata else 0)
    return TransactionView(
        heading=heading,
        txid=known.txid,
        state=state,
        tone=tone,
        story=sentence,
        exact=_exact(known),
        told=() if told is None else _told(told, clock),
        contained=tuple(words.line(each) for each in contained),
        contained_note="" if contained else _no_contents(known),
        untold=_untold(known) if told is None else "",
        attempts=() if told is None else tuple(_attempt(each, clock) for each in told.attempts),
        attempts_note="" if told is None else _attempts_note(told),
        chart=None if told is None else _chart(known.txid, told),
        flow=() if told is None else tuple(_flow(name, done) for name, done in told.components.items()),
        flow_note="" if told is None else _flow_note(told),
        previous=known.txid - 1,
        following=known.txid + 1 if known.txid < newest else 0,
        quarantined=known.is_quarantined,
    )


def _state(known: KnownTransaction) -> tuple[str, Tone, str]:
    last = f"the last committed one is {known.committed_txid:,}"
    if known.is_forgotten:
        return "committed", Tone.CALM, "Exactly once; nothing else is kept of it any more."
    if known.is_committed:
        return "committed", Tone.GOOD, f"Exactly once; {last}."
    if known.metadata or known.story is not None:
        return "in flight", Tone.WAITS, f"Cut, and not committed; {last}."
    return "not cut", Tone.DIM, f"Not cut yet, as far as is stored; {last}."


def _exact(known: KnownTransaction) -> tuple[tuple[str, str], ...]:
    if known.receipt is None:
        return ()
    receipt, count = known.receipt, known.receipt.last_txid - known.receipt.first_txid + 1
    group = f"{counted(count, 'transaction')}, {receipt.first_txid:,} to {receipt.last_txid:,}, in one commit"
    return (
        ("attempt", f"{receipt.attempt_id:016x}"),
        ("group", group if count > 1 else "committed alone"),
        ("digest", words.name(receipt.digest)),
    )


def _told(story: TransactionStory, clock: Clock) -> tuple[tuple[str, str], ...]:
    size = f", about {words.size(story.input_bytes)} read" if story.input_bytes else ""
    shown = [
        ("cut", clock.shown(story.cut_at).text),
        ("input", f"{counted(story.tuples, 'tuple')} by the spout{size}"),
    ]
    if story.processed_at:
        shown.append(("processed", f"after {brief(max(0.0, story.processed_at - story.cut_at))}"))
    if not story.committed_at:
        return (shown[0], ("committed", "not by the run that tells this"))
    shown.append(("committed", f"after {brief(max(0.0, story.committed_at - story.cut_at))}"))
    call = brief(max(0.0, story.committed_at - story.sent_at))
    shown.append(("commit call", f"{call}, {words.size(story.group_bytes)} for the whole group"))
    if story.set_aside:
        shown.append(("set aside", "committed empty, because its batch failed on every attempt"))
    if story.replay_of:
        shown.append(("replay of", f"quarantined txid {story.replay_of:,}"))
    if story.replayed_letters:
        shown.append(("replay of", counted(story.replayed_letters, "dead letter")))
    return tuple(shown)


def _flow_note(story: TransactionStory) -> str:
    return "of the last attempt; none of it was published" if story.set_aside else "of the committed attempt"


def _no_contents(known: KnownTransaction) -> str:
    if known.is_replay:
        return "Nothing of the input, which continues after it: it published what had been set aside."
    if not known.is_committed:
        return "Nothing is stored of it."
    if known.is_forgotten or known.history_from is None or known.txid < known.history_from:
        begins = (
            "there is no history" if known.history_from is None else f"the history begins at {known.history_from:,}"
        )
        return f"No longer kept: {begins}."
    return "Not known: an opaque spout stores positions only of the last transaction of a group."


def _untold(known: KnownTransaction) -> str:
    if not known.is_committed:
        return "The run tells of a transaction once it is committed, or when it ends without having committed it."
    if known.is_forgotten:
        return "Attempts, times and counts are no longer kept."
    return "Attempts, times and counts are not known: the run ended before it told them, or ran with --no-pulse."


def _attempts_note(story: TransactionStory) -> str:
    if story.attempt_count > len(story.attempts):
        return f"{story.attempt_count:,} in all, the last {len(story.attempts)} of them"
    return ""


def _attempt(attempt: AttemptStory, clock: Clock) -> AttemptRow:
    return AttemptRow(
        attempt_id=words.name(attempt.attempt_id),
        wave=words.count(attempt.wave),
        began=clock.time_of_day(attempt.started_at),
        took=brief(max(0.0, attempt.ended_at - attempt.started_at)) if attempt.ended_at else words.UNKNOWN,
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
    told = [mark for mark in marks if mark.at]
    return attempt_chart(f"attempts at transaction {txid:,}", bars, told, said=brief)


def _flow(name: str, done: ComponentStory) -> FlowRow:
    return FlowRow(
        name=words.name(name),
        taken=tuple((words.name(edge), words.count(number)) for edge, number in sorted(done.tuples_in.items())),
        emitted=tuple((words.name(stream), words.count(number)) for stream, number in sorted(done.tuples_out.items())),
        refused=words.count(done.dead_letters),
        busy=brief(done.busy_ms / 1000),
    )
