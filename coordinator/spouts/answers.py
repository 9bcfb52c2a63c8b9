"""Checks the return values of a user's spout; a wrong one is a `WrongAnswerError` that names the remedy.

Positions and notes that would not survive storage unchanged raise a `CodecError`.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any

from coordinated_bolt.user_traceback import WrongAnswerError
from coordinator.spouts.run_so_far import InputChange
from state.codec import pack_exact
from state.errors import SourceError
from state.troubles import Trouble

MAX_PARTITIONS = 1_000_000


def not_of_this_spout(stored: str, wanted: str, topology_id: str) -> SourceError:
    """Returns the error for stored metadata of another kind of spout.

    Args:
        stored: the metadata, in words.
        wanted: what the spout stores, such as "a micro-batch".
        topology_id: the topology's id, for the remedy.
    """
    return SourceError(
        f"topology {topology_id!r} has stored {stored}, which is not {wanted}: it was run with another kind of spout "
        f"before; start over by `txbatch drop {topology_id}`, or take another topology id"
    ).about(Trouble.OTHER_SOURCE)


def expect_made(kind: type, method: str, answer: Any) -> Any:
    if not isinstance(answer, kind):
        raise WrongAnswerError(f"{method} returned {answer!r}; return an instance of a subclass of {kind.__name__}")
    return answer


def expect_count(answer: Any) -> int:
    """Returns a number of partitions: an int, or a value that converts to one exactly, such as NumPy's integers."""
    try:
        count = -1 if isinstance(answer, bool) else operator.index(answer)
    except TypeError:
        count = -1
    if not 0 <= count <= MAX_PARTITIONS:
        raise WrongAnswerError(
            f"number_of_partitions returned {answer!r}; return a whole number from 0 to {MAX_PARTITIONS}"
        )
    return count


def expect_positions(answer: Any) -> Mapping[int, Any]:
    if not isinstance(answer, Mapping) or not all(type(each) is int and each >= 0 for each in answer):
        raise WrongAnswerError(
            f"first_positions returned {answer!r}; return a mapping from numbers of partitions, from 0, to positions"
        )
    for position in answer.values():
        pack_exact(position)
    return answer


def expect_tasks(answer: Any, task_count: int) -> Collection[int]:
    if not isinstance(answer, Collection) or not all(type(each) is int and 0 <= each < task_count for each in answer):
        raise WrongAnswerError(
            f"emitting_tasks returned {answer!r}; return a collection of indexes of tasks, from 0 to {task_count - 1}"
        )
    return answer


def expect_truth(method: str, answer: Any) -> bool:
    """Returns a truth value; refuses None, which a method without a return statement returns."""
    if not isinstance(answer, bool) and type(answer).__name__ not in ("bool", "bool_"):  # NumPy's is not a bool
        raise WrongAnswerError(f"{method} returned {answer!r}; return True or False")
    return bool(answer)


def expect_fingerprint(answer: Any) -> str:
    if not isinstance(answer, str) or not answer:
        raise WrongAnswerError(
            f"fingerprint returned {answer!r}; return a non-empty string that changes with the input"
        )
    try:
        answer.encode()
    except UnicodeEncodeError:
        raise WrongAnswerError(
            f"fingerprint returned {answer!r:.200}, which is not valid Unicode; escape the parts that you make it "
            "of, such as names of files, with repr() or ascii()"
        ) from None
    return answer


def expect_change(answer: Any) -> InputChange | None:
    if answer is not None and not isinstance(answer, InputChange):
        raise WrongAnswerError(
            f"compare returned {answer!r}; return an InputChange, or None if the spout cannot compare"
        )
    if answer is not None:
        for part in ("skipped", "again", "changed", "impossible", "renamed"):
            found = getattr(answer, part)
            if not isinstance(found, tuple) or not all(isinstance(sentence, str) for sentence in found):
                raise WrongAnswerError(f"compare returned {part}={found!r}; return a tuple of sentences")
        expect_notes(answer.notes)
        expect_notes(answer.again_notes)
    return answer


def expect_notes(answer: Any) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping) or not all(isinstance(name, str) for name in answer):
        raise WrongAnswerError(f"notes returned {answer!r}; return a mapping from names to plain data")
    for value in answer.values():
        pack_exact(value)
    return answer
