"""Refuses a start if the stored metadata has a gap, or the input has changed and the user has not accepted that.

The store's checksum already covers every metadata entry. This is an independent check: from the last committed
transaction on, metadata must be consecutive. Otherwise, a transaction whose predecessor is unknown would be cut from
the start of the input, and a gap would be taken for the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.spouts.partition_cut import is_partition_scope, partition_scope
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.transactional.options import adopted_words
from state.errors import SourceError, StateRefusedError
from state.troubles import Trouble
from state.values.whole import is_whole

SENTENCES_SHOWN = 10


FILE_KINDS = ("text files ", "JSON lines ", "CSV files ", "Parquet files ")
"""One of these is in the fingerprint of every input of files."""


@dataclass(frozen=True, slots=True)
class InputQuestion:
    """The input of this start, for a topology that has read input in earlier runs; `change` is the spout's report."""

    topology_id: str
    fingerprint: str
    former: FormerInput
    change: InputChange | None


def check_input(question: InputQuestion, adopt: bool | str) -> list[str]:
    """Returns the changes accepted by `RunOptions.adopt`, one sentence each; called before the takeover.

    Raises:
        SourceError: the input has the same fingerprint, but a part that was read has changed.
        StateRefusedError: the input is another one, and the user has not accepted the consequences.
    """
    words, change = adopted_words(adopt), question.change
    if question.former.is_same:
        return _check_same(question, words or frozenset())
    if words is not None and "unchecked" in words:
        return [f"another input is taken as it is, unchecked: {question.fingerprint}"]
    needed = {} if change is None else _needed(change)
    if words is None or change is None or change.impossible or not _accepts(words, needed):
        raise StateRefusedError(
            f"topology {question.topology_id!r} was started on another input; {_brief(change, needed)}; stored "
            f"fingerprint {question.former.fingerprint!r}, given {question.fingerprint!r}; {_consequences(question)}"
        ).about(Trouble.INPUT_CHANGED)
    accepted = [sentence for sentences in needed.values() for sentence in sentences]
    return [f"continues on another input: {question.fingerprint}", *_shown(accepted)]


def _check_same(question: InputQuestion, words: Collection[str]) -> list[str]:
    change = question.change
    if change is None or "unchecked" in words:
        return []
    needed = _needed(change)
    accepted = [sentence for sentences in needed.values() for sentence in sentences]
    if change.impossible or not _accepts(words, needed):
        found = "; ".join(_shown([*change.impossible, *accepted]))
        ways_out = _ways_out(question.topology_id)
        if not change.impossible:
            ways_out.append(_acceptance(needed))
        raise SourceError(
            f"the input has changed where topology {question.topology_id!r} had read it; {_brief(change, needed)}; "
            f"{found}; {_either(ways_out)}"
        ).about(Trouble.INPUT_CHANGED)
    return _shown(accepted)


def _brief(change: InputChange | None, needed: Collection[str]) -> str:
    """Returns the remedy in a few words; the rest of the message explains it."""
    if change is not None and change.impossible:
        return "restore it, or take another topology id"
    words = "=unchecked" if change is None else f"={','.join(needed)}" if needed else ""
    return f"restore it, or give --adopt{words}"


def accepted_notes(change: InputChange, adopt: bool | str) -> dict[str, Any]:
    """Returns the notes of a change that the user has accepted."""
    words = adopted_words(adopt) or frozenset()
    is_read_again = "again" in words and "renamed" not in words
    return {**change.notes, **(change.again_notes if is_read_again else {})}


def _needed(change: InputChange) -> dict[str, tuple[str, ...]]:
    """Returns word -> the changes that need it."""
    by_word = {
        "skip": change.skipped,
        "again": change.again,
        "changed": change.changed,
        "renamed": change.renamed,
    }
    return {word: sentences for word, sentences in by_word.items() if sentences}


def _accepts(words: Collection[str], needed: Collection[str]) -> bool:
    """Returns whether all changes are accepted; "again" also accepts renamed files."""
    return all(word in words or (word == "renamed" and "again" in words) for word in needed)


def _acceptance(needed: Collection[str]) -> str:
    """Returns how to accept the needed changes, and what that means for the state."""
    said = f"accept exactly this with --adopt={','.join(needed)} (in Python RunOptions.adopt)"
    if "changed" in needed:
        said += ": what was counted stays as it is"
    if "renamed" in needed:
        said += "; with again in place of renamed, those files are counted as new ones"
    elif "again" in needed:
        said += "; what is read again is counted twice"
    return said


def _consequences(question: InputQuestion) -> str:
    """Returns the consequences of the change, and every way out."""
    change, ways_out = question.change, _ways_out(question.topology_id)
    if change is None:
        adopt = "take the new input as it is with --adopt=unchecked (in Python RunOptions.adopt)"
        return (
            "the spout cannot tell whether anything would be skipped or read again (its coordinator has no `compare`); "
            f"{_either([*ways_out, adopt])}"
        )
    needed = _needed(change)
    if change.impossible:
        return f"{'; '.join(_shown(change.impossible))}; --adopt cannot accept that: {_either(ways_out)}"
    if not needed:
        adopt = "continue with --adopt (in Python RunOptions.adopt)"
        is_of_files = any(kind in question.fingerprint for kind in FILE_KINDS)
        follow = "; if more files are to come, read them as they arrive with follow=True" if is_of_files else ""
        return (
            "everything read so far is unchanged, and nothing would be skipped or read again; "
            f"{_either([adopt, *ways_out])}{follow}"
        )
    headings = {
        "skip": "never read",
        "again": "read again",
        "changed": "changed after it was read",
        "renamed": "read under another name",
    }
    found = "; ".join(f"{headings[word]}: {'; '.join(_shown(sentences))}" for word, sentences in needed.items())
    return f"{found}; {_either([*ways_out, _acceptance(needed)])}"


def _ways_out(topology_id: str) -> list[str]:
    return ["restore the input", f"start over with `txbatch drop {topology_id}`", "choose another topology id"]


def _either(ways_out: list[str]) -> str:
    return f"{', '.join(ways_out[:-1])}, or {ways_out[-1]}"


def _shown(sentences: Collection[str]) -> list[str]:
    shown = list(sentences)[:SENTENCES_SHOWN]
    more = len(sentences) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def check_coordinator_metadata(topology_id: str, metadata: Mapping[int, Any], *, committed_txid: int) -> None:
    """Refuses stored coordinator metadata from which the spout cannot continue.

    The last committed txid must have metadata, because the next transaction is cut from it.
    """
    if committed_txid and not metadata:
        raise StateRefusedError(
            f"topology {topology_id!r} is committed up to txid {committed_txid}, but its position in the input is not "
            "stored, because it was run with another kind of spout; run it with that one, start over with "
            f"`txbatch drop {topology_id}`, or choose another topology id"
        ).about(Trouble.OTHER_SOURCE)
    first = committed_txid or 1
    for txid in range(first, max(metadata, default=0) + 1):
        if txid not in metadata:
            raise _hole(topology_id, f"metadata of txid {txid}", metadata, committed_txid)


def check_scopes(topology_id: str, scopes: Mapping[str, Mapping[int, Any]]) -> None:
    """Refuses scopes that do not belong to a partition; `scopes` does not include the coordinator's."""
    for scope, by_txid in scopes.items():
        if not is_partition_scope(scope):
            raise StateRefusedError(
                f"topology {topology_id!r} has the metadata field '{scope}:{max(by_txid)}', which no spout writes; "
                f"other software wrote it: remove it, or start over with `txbatch drop {topology_id}`"
            ).about(Trouble.DAMAGED)


def check_partition_metadata(
    topology_id: str,
    partitions: Mapping[str, Mapping[int, Any]],
    counts: Mapping[int, Any],
    *,
    committed_txid: int,
) -> None:
    """Refuses partitions (scope -> txid -> metadata) unless all have metadata up to the same txid.

    `counts` is txid -> number of partitions.
    """
    last_cut = max((txid for by_txid in partitions.values() for txid in by_txid), default=0)
    for txid in range(committed_txid or 1, max(last_cut, committed_txid) + 1):
        count = counts.get(txid)
        if not is_whole(count, 0):
            raise StateRefusedError(
                f"topology {topology_id!r} has {count!r} in its stored metadata field 'coordinator:{txid}', which is "
                "not a number of partitions, because it was run with another kind of spout; run it with that one, or "
                f"start over with `txbatch drop {topology_id}`"
            ).about(Trouble.OTHER_SOURCE)
        for partition in range(count):
            if txid not in partitions.get(partition_scope(partition), {}):
                raise _hole(topology_id, f"position of partition {partition} in txid {txid}", counts, committed_txid)


def _hole(topology_id: str, what: str, metadata: Mapping[int, Any], committed_txid: int) -> StateRefusedError:
    return StateRefusedError(
        f"topology {topology_id!r} is committed up to txid {committed_txid} and has metadata up to txid "
        f"{max(metadata)}, but the {what} is missing: the server has lost it; restore its data from a consistent "
        f"backup, or start over with `txbatch drop {topology_id}`"
    ).about(Trouble.DAMAGED)
