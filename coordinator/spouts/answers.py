"""Checks what the methods of a user's spout return; a wrong answer is refused with its remedy."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.user_traceback import WrongAnswerError
from coordinator.spouts.run_so_far import InputChange
from state.codec import pack_exact

MAX_PARTITIONS = 1_000_000


def expect_made(kind: type, method: str, answer: Any) -> Any:
    """Returns what a factory method made, which must be an instance of `kind`.

    Raises:
        WrongAnswerError: it is something else.
    """
    if not isinstance(answer, kind):
        raise WrongAnswerError(f"{method} returned {answer!r}; return an instance of a subclass of {kind.__name__}")
    return answer


def expect_count(answer: Any) -> int:
    """Returns a number of partitions: an int, or a value such as NumPy's integers that converts to one exactly.

    Raises:
        WrongAnswerError: it is something else.
    """
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
    """Returns where partitions begin.

    Raises:
        WrongAnswerError: it is not a mapping from numbers of partitions to positions.
        CodecError: a position would not survive storage unchanged.
    """
    if not isinstance(answer, Mapping) or not all(type(each) is int and each >= 0 for each in answer):
        raise WrongAnswerError(
            f"first_positions returned {answer!r}; return a mapping from numbers of partitions, from 0, to positions"
        )
    for position in answer.values():
        pack_exact(position)
    return answer


def expect_truth(method: str, answer: Any) -> bool:
    """Returns a truth value; None, for example, is returned by a method without a return statement.

    Raises:
        WrongAnswerError: the answer is neither True nor False.
    """
    if not isinstance(answer, bool) and type(answer).__name__ not in ("bool", "bool_"):  # NumPy's is not a bool
        raise WrongAnswerError(f"{method} returned {answer!r}; return True or False")
    return bool(answer)


def expect_fingerprint(answer: Any) -> str:
    """Returns a fingerprint.

    Raises:
        WrongAnswerError: it is not a non-empty string, or not one that can be stored.
    """
    if not isinstance(answer, str) or not answer:
        raise WrongAnswerError(
            f"fingerprint returned {answer!r}; return a non-empty string that changes with the input"
        )
    try:
        answer.encode()
    except UnicodeEncodeError:
        raise WrongAnswerError(
            f"fingerprint returned {answer!r:.200}, which is not valid Unicode; escape what it is made of, such as the "
            "name of a file, with repr() or ascii()"
        ) from None
    return answer


def expect_change(answer: Any) -> InputChange | None:
    """Returns the result of a comparison.

    Raises:
        WrongAnswerError: it is something else.
    """
    if answer is not None and not isinstance(answer, InputChange):
        raise WrongAnswerError(
            f"compare returned {answer!r}; return an InputChange, or None if the spout cannot compare"
        )
    if answer is not None:
        for part in ("skipped", "again", "changed", "impossible"):
            said = getattr(answer, part)
            if not isinstance(said, tuple) or not all(isinstance(sentence, str) for sentence in said):
                raise WrongAnswerError(f"compare returned {part}={said!r}; return a tuple of sentences")
        expect_notes(answer.notes)
    return answer


def expect_notes(answer: Any) -> Mapping[str, Any]:
    """Returns notes that can be stored.

    Raises:
        WrongAnswerError: it is not a mapping whose keys are strings.
        CodecError: a value would not survive storage unchanged.
    """
    if not isinstance(answer, Mapping) or not all(isinstance(name, str) for name in answer):
        raise WrongAnswerError(f"notes returned {answer!r}; return a mapping from names to plain data")
    for value in answer.values():
        pack_exact(value)
    return answer
