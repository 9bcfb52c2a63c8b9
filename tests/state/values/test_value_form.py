"""Decimals are kept as integers of their smallest unit, JSON as its one text: exact, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state import HashState, ListState, ValueState
from state.errors import StateRefusedError
from state.values.state_kind import MAX_INTEGER, TupleType, ValueType, field_type_of
from state.values.value_form import (
    SCALE_MAX,
    canonical_json,
    decode_stored,
    scaled,
    stored_bytes,
    tuple_of,
    tuple_text,
    unscaled,
)
from tests.support.stores.written import written


class Ledger:
    """Declares every state whose values have a form of their own."""

    money = HashState("money", value=Decimal, scale=2)
    total = ValueState("total", value=Decimal, scale=0)
    log = ListState("log", value=Decimal, scale=1)
    notes = HashState("notes", value="json")


@given(st.integers(-MAX_INTEGER, MAX_INTEGER), st.integers(0, SCALE_MAX))
def test_every_number_of_units_comes_back_whatever_the_context(units, scale):
    with localcontext() as context:
        context.prec = 3
        value = unscaled(units, scale)
        assert scaled(value, scale) == units
    assert value == Decimal(units) / Decimal(10**scale)
    assert value.as_tuple().exponent == -scale


@pytest.mark.parametrize(
    ("value", "units"),
    [
        (Decimal("12.34"), 1234),
        (Decimal("-0.01"), -1),
        (Decimal("1E+3"), 100_000),
        (Decimal("12.3400000"), 1234),
        (Decimal("-0E-99"), 0),
        (7, 700),
    ],
    ids=str,
)
def test_a_decimal_is_scaled_exactly(value, units):
    assert scaled(value, 2) == units


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Decimal("0.001"), ValueError, "has more than 2 digits after the point; round it first"),
        (Decimal("1E-999999"), ValueError, "has more than 2 digits"),
        (Decimal("1E+999999"), ValueError, "is outside ±90071992547409.91"),
        (Decimal("90071992547409.92"), ValueError, "is outside"),
        (Decimal("NaN"), ValueError, "not a finite number"),
        (Decimal("-Infinity"), ValueError, "not a finite number"),
        (0.1, TypeError, "is a float; give a Decimal or an int"),
        (True, TypeError, "is a bool"),
        ("1.00", TypeError, "is a str"),
    ],
    ids=str,
)
def test_what_would_have_to_be_rounded_is_refused(value, error, message):
    with pytest.raises(error, match=rf"'money' was given value .*, but declares Decimal: .*{message}"):
        written(Ledger(), lambda own: own.money.put("a", value))


def test_decimals_add_up_as_integers_and_are_read_as_decimals():
    class Stored:
        def read(self, name, kind, fields, as_of_txid):
            return [b"1234" if field == "b" else None for field in fields]

    seen = []

    def change(own):
        own.money.increment("a", Decimal("0.10"))
        own.money.increment_many({"a": Decimal("0.20"), "b": 1})
        own.money.put("c", Decimal("-3.5"))
        own.total.increment(Decimal(5))
        own.log.extend([Decimal("0.5"), 2])
        seen.append(own.money.get_many(["b", "c", "d"]))

    found = written(Ledger(), change, Stored())
    assert found["money"].value_type is ValueType.INT
    assert (found["money"].increments, found["money"].puts) == ({"a": 30, "b": 100}, {"c": -350})
    assert found["total"].increments == {"": 5}
    assert found["log"].appends == [5, 20]
    assert seen == [{"b": Decimal("13.34"), "c": Decimal("-3.50"), "d": None}]


def test_json_is_kept_as_one_text_and_read_as_a_value_of_its_own():
    seen = []
    given_value = {"b": [1, 2.5, None, True], "ä": {"x": "y"}}

    def change(own):
        own.notes.put("a", given_value)
        seen.append(own.notes.get("a"))
        seen[0]["b"].append("changed by the reader")
        seen.append(own.notes.get("a"))

    found = written(Ledger(), change)["notes"]
    assert found.puts == {"a": '{"b":[1,2.5,null,true],"ä":{"x":"y"}}'}
    assert seen[1] == given_value


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({1: "a"}, TypeError),
        ([(1, 2)], TypeError),
        ({"a": {1, 2}}, TypeError),
        (float("nan"), ValueError),
        ("\ud800", ValueError),
        (Decimal(1), TypeError),
    ],
    ids=str,
)
def test_json_that_would_come_back_as_something_else_is_refused(value, error):
    with pytest.raises(error):
        canonical_json(value)
    with pytest.raises(error, match=r"'notes' was given value .* but declares json"):
        written(Ledger(), lambda own: own.notes.put("a", value))


@pytest.mark.parametrize(("stored", "declared"), [(b"1.5", ValueType.DECIMAL), (b"{", ValueType.JSON)], ids=str)
def test_a_stored_value_of_another_form_is_refused(stored, declared):
    with pytest.raises(StateRefusedError, match=f"is declared as {declared.value}"):
        decode_stored(stored, declared, "field 'a' of state 's'", 2)


@given(st.tuples(st.text(), st.dates(), st.integers(-MAX_INTEGER, MAX_INTEGER), st.text(alphabet="%|7C25")))
def test_every_tuple_comes_back_and_no_two_are_written_alike(field):
    declared = TupleType((ValueType.STR, ValueType.DATE, ValueType.INT, ValueType.STR))
    text = tuple_text(field, declared)
    assert tuple_of(text, declared) == field
    assert text.encode() == stored_bytes(field)
    assert text.count("|") == 3


@pytest.mark.parametrize(
    ("state", "field", "message"),
    [
        (HashState("a", field=(str, int)), ("x", True), "True is of type bool, not int"),
        (HashState("a", field=(str, int)), ("x", 2**53), "is outside"),
        (HashState("a", field=(str, int)), ["x", 1], "give a tuple of 2 values"),
        (HashState("a", field=(str, int)), "x|1", "give a tuple of 2 values"),
        (HashState("a", field=(str, str)), ("x", "\ud800"), "not valid Unicode"),
        (HashState("a", field=date), datetime(2026, 11, 21, tzinfo=UTC), "is of type datetime, not date"),
        (HashState("a", field=date), "2026-11-21", "is of type str, not date"),
    ],
)
def test_a_field_that_is_not_of_its_declared_form_is_refused(state, field, message):
    wrong = state.first_wrong_field([field])
    assert wrong is not None
    assert message in str(wrong.error)


@pytest.mark.parametrize("stored", [b"x", b"x|y", b"x|01", b"x|1|2", b"%|1", b"\xff|1", b"20261121|x"])
def test_a_stored_field_of_another_form_is_refused(stored):
    with pytest.raises(StateRefusedError, match=r"state 'a' holds .*, but is declared as str\|int"):
        decode_stored(stored, field_type_of("str|int"), "state 'a'")
