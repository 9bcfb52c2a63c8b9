"""Every error leads to an entry of docs/troubleshooting.md, and every entry is led to."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from pathlib import Path

import pytest

from state import errors
from state.errors import SourceError, StateRefusedError, TransactionError
from state.troubles import PAGE, Trouble

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"^### ([^\n]+)\n\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
ENTRIES = dict(ENTRY.findall((ROOT / PAGE).read_text(encoding="utf-8")))
CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TransactionError) and kind is not TransactionError
]


def test_every_trouble_has_an_entry_and_every_entry_a_trouble() -> None:
    assert list(ENTRIES) == [trouble.value for trouble in Trouble]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_entry_of_every_class_names_it(kind: type[TransactionError]) -> None:
    assert f"`{kind.__name__}`" in ENTRIES[kind.trouble.value]


def test_every_trouble_is_what_some_error_is_about() -> None:
    named = {
        node.attr
        for package in ("state", "coordinated_bolt", "committers", "coordinator")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Trouble"
    }
    assert {trouble.name for trouble in Trouble} - named == set()


def test_what_an_error_is_about_travels_with_it() -> None:
    error = StateRefusedError("state is older").about(Trouble.REGRESSED)
    assert pickle.loads(pickle.dumps(error)).trouble is Trouble.REGRESSED
    assert StateRefusedError("x").trouble is Trouble.STATE_REFUSED


def test_a_class_without_a_trouble_of_its_own_has_that_of_its_base() -> None:
    class OddSourceError(SourceError):
        pass

    assert OddSourceError("x").trouble is Trouble.INPUT


def test_a_drop_and_a_takeover_are_two_troubles() -> None:
    assert errors.FencedError("words").trouble is Trouble.FENCED
    assert errors.FencedError("words", was_dropped=True).trouble is Trouble.DROPPED
