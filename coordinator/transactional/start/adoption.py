"""Whether a run may continue on an input: what the spout tells of it, against what the user has accepted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.transactional.options import adopted_words
from state.errors import SourceError, StateRefusedError

SENTENCES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class InputQuestion:
    """An input that is about to be run on a topology that has read before.

    Attributes:
        topology_id: the topology.
        fingerprint: of this input.
        former: how far earlier runs have read.
        change: what the spout tells; None if it cannot tell.
    """

    topology_id: str
    fingerprint: str
    former: FormerInput
    change: InputChange | None


def check_input(question: InputQuestion, adopt: bool | str) -> list[str]:
    """Decides; called once at start, before anything is taken over (driver).

    Args:
        question: what is known.
        adopt: see `RunOptions.adopt`.

    Returns:
        What was accepted, a sentence each.

    Raises:
        SourceError: the input has the same fingerprint and was changed where it had been read.
        StateRefusedError: it is another input, and what follows from that was not accepted.
    """
    words, change = adopted_words(adopt), question.change
    if question.former.is_same:
        return _check_same(question, words or frozenset())
    if words is None:
        raise StateRefusedError(f"{_another(question)}; {_told(question)}")
    if "unchecked" in words:
        return [f"continues on another input, unchecked: {question.fingerprint}"]
    if change is None:
        raise StateRefusedError(f"{_another(question)}; {_told(question)}")
    needed = _needed(change)
    if change.impossible or not needed.keys() <= words:
        raise StateRefusedError(f"{_another(question)}; {_told(question)}")
    accepted = [sentence for sentences in needed.values() for sentence in sentences]
    return [f"continues on another input: {question.fingerprint}", *_shown(accepted)]


def _check_same(question: InputQuestion, words: Collection[str]) -> list[str]:
    change = question.change
    if change is None or "unchecked" in words:
        return []
    if change.impossible or (change.changed and "changed" not in words):
        found = "; ".join(_shown([*change.impossible, *change.changed]))
        remedy = _put_back(question.topology_id)
        if not change.impossible:
            remedy += ", or continue with what was counted by --adopt=changed (in Python RunOptions.adopt)"
        raise SourceError(
            f"the input has changed where topology {question.topology_id!r} had read it: {found}; {remedy}"
        )
    return _shown(change.changed)


def _needed(change: InputChange) -> dict[str, tuple[str, ...]]:
    """Word -> what it has to accept."""
    by_word = {"skip": change.skipped, "again": change.again, "changed": change.changed}
    return {word: sentences for word, sentences in by_word.items() if sentences}


def _another(question: InputQuestion) -> str:
    return (
        f"topology {question.topology_id!r} was started on another input: stored fingerprint "
        f"{question.former.fingerprint!r}, given {question.fingerprint!r}"
    )


def _told(question: InputQuestion) -> str:
    """What follows from the change, and every way out."""
    change, way_out = question.change, _put_back(question.topology_id)
    if change is None:
        return (
            "the spout cannot tell whether anything would be skipped or read again (its coordinator has no `compare`); "
            f"{way_out}, or take the new input as it is by --adopt=unchecked (in Python RunOptions.adopt)"
        )
    needed = _needed(change)
    if change.impossible:
        return f"{'; '.join(_shown(change.impossible))}; {way_out}"
    if not needed:
        return (
            "everything that was read is the same, and nothing would be skipped or read again: continue with --adopt "
            f"(in Python RunOptions.adopt), or {way_out}"
        )
    headings = {"skip": "never read", "again": "read again", "changed": "changed after it was read"}
    found = "; ".join(f"{headings[word]}: {'; '.join(_shown(sentences))}" for word, sentences in needed.items())
    words = ",".join(needed)
    return f"{found}; {way_out}, or accept exactly this by --adopt={words} (in Python RunOptions.adopt)"


def _put_back(topology_id: str) -> str:
    return f"put the input back as it was, start over by `txbatch drop {topology_id}`, choose another topology id"


def _shown(sentences: Collection[str]) -> list[str]:
    shown = list(sentences)[:SENTENCES_SHOWN]
    more = len(sentences) - len(shown)
    return [*shown, f"and {more} more"] if more else shown
