"""What counts as the same state: exact, but for what txbatch itself leaves open if tuples are dealt otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.proving.quiet_run import Kept
from coordinator.proving.same_state import differences
from state import HashState, ListState, SortedSetState, ValueState

PARTS = HashState("parts").per("day", str)
LETTER = ("store", "no", (1,))


def told(handle: Any, one: Any, other: Any, *, is_rearranged: bool = True) -> list[tuple[str, str]]:
    expected, found = (Kept({handle.name: content}, []) for content in (one, other))
    return differences(expected, found, [handle], is_rearranged=is_rearranged)


SAME: list[tuple[Any, Any, Any]] = [
    (HashState("s"), {"a": 1}, {"a": 1}),
    (HashState("s", value=float), {"a": 0.1 + 0.2 + 0.3}, {"a": 0.3 + 0.2 + 0.1}),
    (SortedSetState("s"), {"a": 1.0}, {"a": 1.0 + 1e-12}),
    (ListState("s"), ["a", "b", "a"], ["a", "a", "b"]),
    (ListState("s", keep_last=2), ["a", "b"], ["c", "b"]),
    (HashState("s", value="json"), {"a": {"b": [0.3]}}, {"a": {"b": [0.1 + 0.2]}}),
    (PARTS, {"mon": {"a": 1}}, {"mon": {"a": 1}}),
]
DIFFERENT: list[tuple[Any, Any, Any]] = [
    (HashState("s"), {"a": 1}, {"a": 2}),
    (HashState("s"), {"a": 1}, {}),
    (HashState("s", value="json"), {"a": 1}, {"a": True}),
    (HashState("s", value=float), {"a": 0.1}, {"a": 0.1001}),
    (ListState("s"), ["a", "b"], ["a", "a"]),
    (ListState("s", keep_last=2), ["a", "b"], ["a"]),
    (ValueState("s"), None, 1),
    (PARTS, {"mon": {"a": 1}}, {"tue": {"a": 1}}),
]


@pytest.mark.parametrize(("handle", "one", "other"), SAME)
def test_what_differs_by_order_alone_is_the_same_if_anything_was_rearranged(handle, one, other) -> None:
    assert told(handle, one, other) == []
    assert bool(told(handle, one, other, is_rearranged=False)) == (one != other)


@pytest.mark.parametrize(("handle", "one", "other"), DIFFERENT)
def test_what_differs_is_named(handle: Any, one: Any, other: Any) -> None:
    (name, sentence), *_ = told(handle, one, other)
    assert name == handle.name
    assert sentence.startswith(f"state {handle.name}")


def test_of_many_fields_three_are_shown() -> None:
    ((_, sentence),) = told(HashState("s"), dict.fromkeys("abcde", 1), dict.fromkeys("abcde", 2))
    assert sentence == "state s differs: 'a' is 2, expected 1; 'b' is 2, expected 1; 'c' is 2, expected 1, and 2 more"


@pytest.mark.parametrize(("letters", "sentence"), [([], "0 dead letters, and 1"), ([("a", "b", ())], "other tuples")])
def test_dead_letters_are_compared(letters: list[Any], sentence: str) -> None:
    ((name, shown),) = differences(Kept({}, [LETTER]), Kept({}, letters), [], is_rearranged=True)
    assert name == ""
    assert sentence in shown
