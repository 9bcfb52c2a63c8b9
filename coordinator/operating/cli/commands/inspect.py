"""``txbatch inspect``: what is known of one transaction."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from coordinator.operating.cli.command import AsJson, Describing, Parameters, ServerOptions, TopologyId, Txid, command
from coordinator.operating.cli.loading import read_words
from coordinator.operating.cli.run_lines import moment
from coordinator.operating.cli.terminal import say, say_json
from coordinator.operating.inspection.wording import WordsByScope, words_or_values
from coordinator.server_choice import ServerChoice
from coordinator.watching.durations import brief
from state.printable import SENTENCE_LIMIT, counted, one_line
from state.records.transaction_history import KnownTransaction
from state.records.transaction_story import AttemptStory, ComponentStory, TransactionStory

COMMITTED, IN_FLIGHT, NOT_CUT = "committed", "in flight", "not cut"


@command
def inspect(
    *,
    topology_id: TopologyId,
    txid: Txid,
    factory: Describing = None,
    parameters: Parameters = None,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show one transaction: what it contained, its attempts and why they failed, counts, group, receipt and times."""
    server = typed.choice()
    with server.store(topology_id) as store:
        known = store.transaction(txid)
    if known is None:
        raise server.unknown_topology(topology_id, hint=": `txbatch list` shows what is there")
    read = {} if known.is_replay else known.metadata
    words = read_words(topology_id, known.source_fingerprint, read, factory, parameters)
    if as_json:
        say_json({"topology_id": topology_id, **plain(known, words)}, default=repr)
        return
    say(*map(typed.completed, lines(topology_id, known, server, words)))


def state_of(known: KnownTransaction) -> str:
    if known.is_committed:
        return COMMITTED
    return IN_FLIGHT if known.metadata or known.story is not None else NOT_CUT


def plain(known: KnownTransaction, words: WordsByScope) -> dict[str, Any]:
    receipt = known.receipt
    return {
        "txid": known.txid,
        "state": state_of(known),
        "committed_txid": known.committed_txid,
        "history_from": known.history_from,
        "receipt": None if receipt is None else asdict(receipt) | {"attempt_id": f"{receipt.attempt_id:016x}"},
        "contained": dict(words),
        "metadata": {} if known.is_replay else dict(known.metadata),
        "is_replay": known.is_replay,
        "metadata_left_out": dict(known.left_out),
        "is_quarantined": known.is_quarantined,
        "story": None if known.story is None else known.story.to_dict(),
    }


def lines(topology_id: str, known: KnownTransaction, server: ServerChoice, words: WordsByScope) -> list[str]:
    shown = [("state", _state(known))]
    if known.receipt is not None:
        receipt, count = known.receipt, known.receipt.last_txid - known.receipt.first_txid + 1
        shown.append(("receipt", f"attempt {receipt.attempt_id:016x}, digest {receipt.digest}"))
        shown.append(
            (
                "group",
                f"{counted(count, 'transaction')}, {receipt.first_txid:,} to {receipt.last_txid:,}, in one commit",
            )
        )
    if known.is_quarantined:
        shown.insert(1, ("quarantined", f"see `txbatch quarantine show {topology_id} {known.txid}`"))
    shown += [("contained", text) for text in _contained(known, words)]
    story = known.story
    if story is not None:
        shown += _times_and_sizes(story, known)
    elif state_of(known) != NOT_CUT:
        shown.append(("story", _without_story(known)))
    head = f"txid {known.txid:,} of {topology_id} on {server}"
    body = [f"  {name:<17} {one_line(text, SENTENCE_LIMIT)}" for name, text in shown]
    if story is not None:
        body += [*_attempts(story), *_components(story)]
    return [head, *body]


def _state(known: KnownTransaction) -> str:
    last = f"the last committed one is {known.committed_txid:,}"
    if state_of(known) == NOT_CUT:
        return f"not cut yet, as far as is stored; {last}"
    if state_of(known) == IN_FLIGHT:
        return f"cut, and not committed; {last}"
    if known.is_quarantined:
        return f"quarantined: its batch was set aside, and it was committed empty; {last}"
    if known.story is not None and known.story.set_aside:
        return f"committed empty: its batch had been quarantined, and was republished or discarded; {last}"
    if known.is_forgotten:
        return f"committed, exactly once; nothing else is kept of it any more{_begins(known)}"
    return f"committed, exactly once; {last}"


def _contained(known: KnownTransaction, words: WordsByScope) -> list[str]:
    if known.is_replay:
        return ["nothing of the input, which continues after it: it published what had been set aside"]
    found = words_or_values(known.metadata, words)
    found += [f"{scope}: {size:,} bytes, too long to be kept" for scope, size in sorted(known.left_out.items())]
    if found or not known.is_committed or known.is_forgotten:
        return found
    if known.history_from is None or known.txid < known.history_from:
        return [f"no longer kept{_begins(known)}"]
    return ["not known: an opaque spout stores positions only of the last transaction of a group"]


def _begins(known: KnownTransaction) -> str:
    if known.history_from is None:
        return ": there is no history"
    return f": the history begins at txid {known.history_from:,}, see --history"


def _without_story(known: KnownTransaction) -> str:
    if known.is_forgotten:
        return "not kept"
    if not known.is_committed:
        return (
            "no failed attempt is told: none has failed, the run has not ended yet (`txbatch status` has its last "
            "failure), it was killed, or it ran with --no-pulse"
        )
    return "not told: the run ended too early or ran with --no-pulse, or the story is unreadable or no longer kept"


def _times_and_sizes(story: TransactionStory, known: KnownTransaction) -> list[tuple[str, str]]:
    if not story.committed_at:
        later = "; a later run has committed it, and told nothing of that" if known.is_committed else ""
        return [("times", f"cut {moment(story.cut_at)}, not committed by that run{later}")]
    times = [f"cut {moment(story.cut_at)}"]
    if story.processed_at:
        times.append(f"processed after {brief(story.processed_at - story.cut_at)}")
    times.append(f"committed after {brief(story.committed_at - story.cut_at)}")
    times.append(f"commit call {brief(story.committed_at - story.sent_at)}")
    size = f", of about {story.input_bytes:,} bytes" if story.input_bytes else ""
    shown = [("times", ", ".join(times)), ("input", f"{counted(story.tuples, 'tuple')} by the spout{size}")]
    shown.append(("commit", f"{story.group_bytes:,} bytes for the whole group"))
    if story.set_aside:
        shown.append(("set aside", "it was committed empty, because its batch failed on every attempt"))
    if story.replay_of:
        shown.append(("republishes", f"quarantined txid {story.replay_of:,}"))
    if story.replayed_letters:
        shown.append(("republishes", counted(story.replayed_letters, "dead letter")))
    return shown


def _attempts(story: TransactionStory) -> list[str]:
    more = story.attempt_count - len(story.attempts)
    earlier = f", the last {len(story.attempts)} of them" if more else ""
    head = f"  {'attempts':<17} {story.attempt_count:,}{earlier}"
    return [head, *(f"    {_attempt(each)}" for each in story.attempts)]


def _attempt(attempt: AttemptStory) -> str:
    took = brief(max(0.0, attempt.ended_at - attempt.started_at)) if attempt.ended_at else "?"
    how = f"failed, {attempt.failed}: {one_line(attempt.reason)}" if attempt.failed else "committed"
    return f"{one_line(attempt.attempt_id, 40)}  wave {attempt.wave:,}  {moment(attempt.started_at)}  {took:>7}  {how}"


def _components(story: TransactionStory) -> list[str]:
    if not story.components:
        return []
    which = "tuples of the last attempt, as far as its tasks have told; none is committed" if story.set_aside else ""
    head = f"  {'components':<17} {which or 'tuples of the committed attempt'}"
    return [head, *map(_component, story.components.items())]


def _component(item: tuple[str, ComponentStory]) -> str:
    name, done = item
    parts = [f"{count:,} from {one_line(edge)}" for edge, count in sorted(done.tuples_in.items())]
    parts += [f"{count:,} out on {one_line(stream)}" for stream, count in sorted(done.tuples_out.items())]
    if done.dead_letters:
        parts.append(f"{done.dead_letters:,} refused")
    return f"    {one_line(name, 40)}: {', '.join(parts) or 'none'}, {brief(done.busy_ms / 1000)}"
