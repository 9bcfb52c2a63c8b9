"""What a line of an export says of a key, and what it cannot say."""

from __future__ import annotations

import json

import pytest

from coordinator.operating.transfer.state_lines import from_json, lines_of, to_json
from state.errors import StateRefusedError
from state.kinds.state_family import PartType
from state.records.declared_states import DescribedState
from state.records.stored_records import StoredPiece
from state.values.state_kind import StateKind, ValueType

VIEWS = DescribedState("views", StateKind.HASH, ValueType.INT, ValueType.STR, part_type=PartType.DATE)


def test_an_entry_of_a_part_is_typed_as_declared_and_a_part_of_another_type_ends_an_export_and_is_named():
    piece = StoredPiece("views:2026-11-21", StateKind.HASH, [(b"a", b"1")], 5)
    assert list(lines_of(piece, {"views": VIEWS})) == [
        {"state": "views", "part": "2026-11-21", "expires_ms": 5},
        {"state": "views", "part": "2026-11-21", "field": "a", "value": 1},
    ]
    piece = StoredPiece("views:yesterday", StateKind.HASH, [(b"a", b"1")], None)
    with pytest.raises(StateRefusedError, match=r"'views' has a key for the part 'yesterday'.*one for each date"):
        list(lines_of(piece, {"views": VIEWS}))


@pytest.mark.parametrize(("spelled", "score"), [(b"19.989999999999998", 19.99), (b"19.99", 19.99), (b"3", 3.0)])
def test_a_score_is_a_number_however_a_server_spells_it(spelled: bytes, score: float) -> None:
    """Redis 7.0 spells with 17 digits, Valkey with as few as read back equal."""
    ranked = DescribedState("prices", StateKind.SORTED_SET, ValueType.FLOAT, ValueType.STR)
    piece = StoredPiece("prices", StateKind.SORTED_SET, [(b"tea", spelled)], None)
    assert list(lines_of(piece, {"prices": ranked})) == [{"state": "prices", "member": "tea", "score": score}]


FLOAT, INT, STR, JSON, DECIMAL = ValueType.FLOAT, ValueType.INT, ValueType.STR, ValueType.JSON, ValueType.DECIMAL


def through_a_file(stored: bytes, declared: ValueType) -> bytes:
    line = json.dumps(to_json(stored, declared, 2), ensure_ascii=False, allow_nan=False).encode()
    return from_json(json.loads(line), declared, 2)


@pytest.mark.parametrize("stored", [b"inf", b"-inf", b"nan", b"1e400"])
def test_scores_and_floats_that_others_have_made_infinite_are_put_back(stored):
    assert through_a_file(stored, FLOAT) == stored


@pytest.mark.parametrize("declared", [INT, DECIMAL, JSON])
def test_values_too_large_or_too_deep_for_python_are_put_back(declared):
    stored = (b"[" if declared is JSON else b"1") * 100_000
    assert through_a_file(stored, declared) == stored


@pytest.mark.parametrize(
    ("stored", "declared"),
    [(b"-0.0", FLOAT), (b"007", INT), (b"\xff", STR), (b'{"base64":"aGk="}', JSON), (b"NaN", JSON), (b"1.5", DECIMAL)],
)
def test_what_the_declared_type_would_spell_otherwise_is_put_back(stored, declared):
    assert through_a_file(stored, declared) == stored


@pytest.mark.parametrize("number", [2**53 + 1, 10**400], ids=["between", "beyond"])
def test_an_integer_that_no_float_equals_is_no_float_of_an_edited_export(number):
    with pytest.raises(ValueError, match="is not a value of type float"):
        from_json(number, FLOAT)
    assert from_json(2**53 + 2, FLOAT) == b"9007199254740994"
