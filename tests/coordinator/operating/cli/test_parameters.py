"""Text becomes what the factory's parameters declare, or a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Union

import pytest

from coordinator.operating.cli.parameters import bind_parameters, parse_pairs
from state.errors import TopologyError


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


@pytest.mark.parametrize(
    ("factory", "given", "sentence"),
    [
        (
            factory,
            {"input": "a", "lines": "1"},
            "has no parameter 'lines'; its parameters: input, lines_per_batch=1000, ratio=0.5",
        ),
        (factory, {"lines_per_batch": "1"}, "needs parameter 'input'; give -p input=VALUE"),
        (factory, {"input": "a", "lines_per_batch": "many"}, "lines_per_batch='many' is not of type int"),
        (factory, {"input": "a", "lines_per_batch": "1.5"}, "lines_per_batch='1.5' is not of type int"),
        (factory, {"input": "a", "strict": "perhaps"}, "strict='perhaps' is not of type bool"),
        (lambda: None, {"a": "1"}, "has no parameter 'a'; it has no parameters"),
        (lambda count, /: None, {}, "'count' by position only"),
    ],
)
def test_what_does_not_fit_is_refused(factory: Any, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        bind_parameters(factory, "m:f", given)
    assert sentence in str(refusal.value)


def test_pairs_keep_later_equal_signs() -> None:
    assert parse_pairs("-p", ["a=b=c", "d="]) == {"a": "b=c", "d": ""}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["a"], "-p 'a' does not have the form key=value"),
        (["=a"], "-p '=a' does not have the form"),
        (["a=1", "a=2"], "-p sets 'a' twice, to '1' and '2'"),
    ],
)
def test_pairs_that_are_none_are_refused(texts: list[str], sentence: str) -> None:
    with pytest.raises(TopologyError) as refusal:
        parse_pairs("-p", texts)
    assert sentence in str(refusal.value)
