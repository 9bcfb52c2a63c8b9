"""``txbatch inspect``: shows one transaction."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from coordinator.operating.cli.command import AsJson, Describing, Parameters, ServerOptions, TopologyId, Txid, command
from coordinator.operating.cli.loading import read_words
from coordinator.operating.cli.run_lines import moment
from coordinator.operating.cli.terminal import say, say_json
from coordinator.operating.inspection.known_transaction import (
    COMMITTED,
    IN_FLIGHT,
    NOT_CUT,
    contents_of,
    group_of,
    specials_of,
    state_of,
    why_without_story,
)
from coordinator.operating.inspection.wording import WordsByScope
from coordinator.server_choice import ServerChoice
from coordinator.watching.durations import brief
from state.printable import SENTENCE_LIMIT, counted, one_line
from state.records.transaction_history import KnownTransaction
from state.records.transaction_story import AttemptStory, ComponentStory, TransactionStory


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
    read = {} if known.is_republication else known.metadata
    words = read_words(topology_id, known.source_fingerprint, read, factory, parameters)
    if as_json:
        say_json({"topology_id": topology_id, **plain(known, words)}, default=repr)
        return
    say(*map(typed.completed, lines(topology_id, known, server, words)))


def plain(known: KnownTransaction, words: WordsByScope) -> dict[str, Any]:
    receipt = known.receipt
    return {
        "txid": known.txid,
        "state": COMMITTED if known.is_committed else state_of(known)[0],
        "committed_txid": known.committed_txid,
        "history_from": known.history_from,
        "receipt": None if receipt is None else asdict(receipt) | {"attempt_id": f"{receipt.attempt_id:016x}"},
        "contained": dict(words),
        "metadata": {} if known.is_republication else dict(known.metadata),
        "is_republication": known.is_republication,
        "metadata_left_out": dict(known.left_out),
        "is_quarantined": known.is_quarantined,
        "story": None if known.story is None else known.story.to_dict(),
    }


def lines(topology_id: str, known: KnownTransaction, server: ServerChoice, words: WordsByScope) -> list[str]:
    state, said = state_of(known)
    separator = ", " if state == COMMITTED else ": "
    shown = [("state", said if state in (IN_FLIGHT, NOT_CUT) else f"{state}{separator}{said}")]
    if known.receipt is not None:
        shown.append(("receipt", f"attempt {known.receipt.attempt_id:016x}, digest {known.receipt.digest}"))
        shown.append(("group", group_of(known.receipt)))
    if known.is_quarantined:
        shown.insert(1, ("quarantined", f"see `txbatch quarantine show {topology_id} {known.txid}`"))
    contained, why_nothing = contents_of(known, words)
    if not contained and known.is_committed and not known.is_forgotten:
        contained = [why_nothing]
    shown += [("contained", text) for text in contained]
    story = known.story
    if story is not None:
        shown += _times_and_sizes(story, known)
    elif state != NOT_CUT:
        shown.append(("story", why_without_story(known)))
    head = f"txid {known.txid:,} of {topology_id} on {server}"
    body = [f"  {name:<17} {one_line(text, SENTENCE_LIMIT)}" for name, text in shown]
    if story is not None:
        body += [*_attempts(story), *_components(story)]
    return [head, *body]


def _times_and_sizes(story: TransactionStory, known: KnownTransaction) -> list[tuple[str, str]]:
    if not story.committed_at:
        later = "; a later run has committed it, and reported nothing of that" if known.is_committed else ""
        return [("times", f"cut {moment(story.cut_at)}, not committed by that run{later}")]
    times = [f"cut {moment(story.cut_at)}"]
    if story.processed_at:
        times.append(f"processed after {brief(story.processed_at - story.cut_at)}")
    times.append(f"committed after {brief(story.committed_at - story.cut_at)}")
    times.append(f"commit call {brief(story.committed_at - story.sent_at)}")
    size = f", of about {story.input_bytes:,} bytes" if story.input_bytes else ""
    shown = [("times", ", ".join(times)), ("input", f"{counted(story.tuples, 'tuple')} by the spout{size}")]
    shown.append(("commit", f"{story.group_bytes:,} bytes for the whole group"))
    return [*shown, *specials_of(story)]


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
    which = "tuples of the last attempt, as far as tasks have reported; none is committed" if story.set_aside else ""
    head = f"  {'components':<17} {which or 'tuples of the committed attempt'}"
    return [head, *map(_component, story.components.items())]


def _component(item: tuple[str, ComponentStory]) -> str:
    name, done = item
    parts = [f"{count:,} from {one_line(edge)}" for edge, count in sorted(done.tuples_in.items())]
    parts += [f"{count:,} out on {one_line(stream)}" for stream, count in sorted(done.tuples_out.items())]
    if done.dead_letters:
        parts.append(f"{done.dead_letters:,} refused")
    return f"    {one_line(name, 40)}: {', '.join(parts) or 'none'}, {brief(done.busy_ms / 1000)}"
