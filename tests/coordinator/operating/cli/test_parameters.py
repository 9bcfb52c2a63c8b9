"""Text becomes what the factory's parameters declare, or a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Union

import pytest

from coordinator.operating.cli.parameters import bind_parameters, parse_pairs
from state.errors import TopologyError
from tests.support.approved import approved, refusals


def factory(input, lines_per_batch=1000, *, ratio=0.5, strict=False, name="x", other=None): ...


def annotated(
    count: int,
    limit: int | None = None,
    old: Union[float, None] = None,  # noqa: UP007 - users still write it so
    either: int | str = 1,
    path: Path | None = None,
): ...


def unresolvable(count: NoSuchName = 3): ...  # type: ignore[name-defined] # noqa: F821 - what is tested


def test_defaults_say_the_type() -> None:
    given = {"input": "7", "lines_per_batch": "10", "ratio": "2", "strict": "yes", "name": "5", "other": "8"}
    bound = bind_parameters(factory, "m:f", given)
    assert bound == {"input": "7", "lines_per_batch": 10, "ratio": 2.0, "strict": True, "name": "5", "other": "8"}
    assert type(bound["ratio"]) is float


@pytest.mark.parametrize(
    ("factory", "given", "expected"),
    [
        (annotated, {"count": "4"}, {"count": 4}),
        (annotated, {"count": "4", "limit": "-1"}, {"count": 4, "limit": -1}),
        (annotated, {"count": "4", "old": "1e3"}, {"count": 4, "old": 1000.0}),
        (annotated, {"count": "4", "either": "3"}, {"count": 4, "either": 3}),
        (annotated, {"count": "4", "either": "three"}, {"count": 4, "either": "three"}),
        (annotated, {"count": "4", "path": "5"}, {"count": 4, "path": "5"}),
        (unresolvable, {"count": "4"}, {"count": 4}),
        (lambda **rest: None, {"a": "1"}, {"a": "1"}),
    ],
)
def test_annotations_say_the_type(factory: Any, given: dict[str, str], expected: dict[str, Any]) -> None:
    assert bind_parameters(factory, "m:f", given) == expected


@pytest.mark.parametrize(("word", "value"), [("true", True), ("On", True), ("1", True), ("no", False), ("0", False)])
def test_words_for_yes_and_no(word: str, value: bool) -> None:
    assert bind_parameters(factory, "m:f", {"input": "", "strict": word})["strict"] is value


REFUSED = {
    "an unknown parameter": lambda: bind_parameters(factory, "m:f", {"input": "a", "lines": "1"}),
    "a missing one": lambda: bind_parameters(factory, "m:f", {"lines_per_batch": "1"}),
    "a word for a number": lambda: bind_parameters(factory, "m:f", {"input": "a", "lines_per_batch": "many"}),
    "a part of a whole number": lambda: bind_parameters(factory, "m:f", {"input": "a", "lines_per_batch": "1.5"}),
    "neither yes nor no": lambda: bind_parameters(factory, "m:f", {"input": "a", "strict": "perhaps"}),
    "a factory without parameters": lambda: bind_parameters(lambda: None, "m:f", {"a": "1"}),
    "one by position only": lambda: bind_parameters(lambda count, /: None, "m:f", {}),
    "no pair": lambda: parse_pairs("-p", ["a"]),
    "no name": lambda: parse_pairs("-p", ["=a"]),
    "a name twice": lambda: parse_pairs("-p", ["a=1", "a=2"]),
}


def test_what_does_not_fit_is_refused() -> None:
    approved(refusals(REFUSED, TopologyError), "parameters")


def test_pairs_keep_later_equal_signs() -> None:
    assert parse_pairs("-p", ["a=b=c", "d="]) == {"a": "b=c", "d": ""}
