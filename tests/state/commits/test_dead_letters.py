"""Dead letters as values: packed, numbered in order, within limits."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from state.commits.dead_letters import (
    REASON_LIMIT,
    LetterLimits,
    add_letters,
    letter_count,
    letter_of,
)
from state.commits.write_set import WriteSet
from state.errors import StateRefusedError, TopologyError
from tests.support.stores.builders import packed_letter


def stored(*letters: tuple[int, list[tuple[int, list[bytes]]]], total: int = 100) -> WriteSet:
    write_set = WriteSet()
    add_letters(write_set, letters, total)
    return write_set


def members(write_set: WriteSet) -> list[tuple[bytes, float]]:
    """As the server keeps them: by score, then by member."""
    assert write_set.letters is not None
    return sorted(write_set.letters.added.items(), key=lambda item: (item[1], item[0]))


@pytest.mark.parametrize("value", [1, "ä", b"\xff", None, 2.5, (1, [2]), {"k": Decimal("1.10")}, dt.date(2026, 11, 21)])
def test_a_letter_keeps_its_values_and_their_types(value: Any) -> None:
    ((member, score),) = members(stored((7, [(3, [packed_letter(value)])])))
    letter = letter_of(int(score), member)
    assert letter["line"] == value
    assert type(letter["line"]) is type(value)
    assert (letter.letter_id, letter.component_id, letter.source_component) == ("7.0", "check", "lines")


def test_letters_of_a_transaction_are_numbered_by_task_and_call() -> None:
    by_task = [(9, [packed_letter("e")]), (2, [packed_letter("a"), packed_letter("b")]), (3, [packed_letter("c")])]
    found = [letter_of(4, member)["line"] for member, _ in members(stored((4, by_task)))]
    assert found == ["a", "b", "c", "e"]


def test_equal_letters_of_one_or_of_two_transactions_are_all_kept() -> None:
    same = packed_letter()
    write_set = stored((1, [(1, [same, same])]), (2, [(1, [same])]))
    assert letter_count(write_set) == 3
    assert [letter_of(int(score), member).letter_id for member, score in members(write_set)] == ["1.0", "1.1", "2.0"]


def test_a_group_without_letters_publishes_nothing_more() -> None:
    assert stored((1, []), (2, [(1, [])])) == WriteSet()
    assert letter_count(WriteSet()) == 0


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("r" * REASON_LIMIT, "r" * REASON_LIMIT),
        ("r" * (REASON_LIMIT + 1), "r" * (REASON_LIMIT - 1) + "…"),
        ("half a \ud83d pair", "half a \\ud83d pair"),
    ],
)
def test_a_reason_is_bounded_and_valid_text(given: str, kept: str) -> None:
    ((member, _),) = members(stored((1, [(1, [packed_letter(reason=given)])])))
    assert letter_of(1, member).reason == kept


@pytest.mark.parametrize("member", [b"", b"1.000000:", b"1.000000:\xc1", b"1.x:\x90", b"1.000000:\x91\x01"])
def test_a_damaged_letter_is_refused_with_its_transaction(member: bytes) -> None:
    with pytest.raises(StateRefusedError, match="a dead letter of txid 12 cannot be read"):
        letter_of(12, member)


@pytest.mark.parametrize("name", ["per_transaction", "total", "letter_bytes"])
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "5", 10**9])
def test_a_limit_is_an_integer_in_its_range(name: str, value: Any) -> None:
    with pytest.raises(TopologyError, match=f"dead letters: {name} is {value!r}; give an integer from 1 to"):
        LetterLimits(**{name: value})
