"""Stored bytes become JSON and the same bytes again, even those that txbatch would never have stored."""

from __future__ import annotations

import json

import pytest

from coordinator.operating.transfer.state_lines import from_json, to_json
from state.values.state_kind import ValueType

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
