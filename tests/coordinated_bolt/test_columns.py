"""Columns behave like the list of rows they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.columns import Columns, Stretch, add_columns, column_of, from_wire, taken, to_wire
from state.codec import pack, unpack
from tests.support.case_names import shown
from tests.support.values import values

rows_of_two = st.lists(st.lists(values, min_size=2, max_size=2), max_size=8)
parts = st.slices(8)


def columns(rows, width=2):
    return Columns.of_rows(rows, width)


@given(rows_of_two, parts, st.data())
def test_length_iteration_slices_and_places_are_those_of_the_rows(rows, part, data):
    held = columns(rows)
    assert (len(held), list(held), bool(held)) == (len(rows), rows, bool(rows))
    assert list(held[part]) == rows[part]
    places = data.draw(st.lists(st.integers(0, len(rows) - 1)) if rows else st.just([]))
    assert list(taken(held, places)) == taken(rows, places) == [rows[place] for place in places]
    assert column_of(held, 1) == column_of(rows, 1)


def test_rows_without_values_are_counted_all_the_same():
    held = Columns([], 3)
    assert (len(held), list(held), len(held[1:]), len(held.take([0, 2]))) == (3, [[], [], []], 2, 2)
    assert from_wire(unpack(pack(to_wire(held)))) == held


@given(rows_of_two, rows_of_two)
def test_columns_of_one_stream_gather_in_one_stretch_and_leave_what_was_given_alone(first, second):
    given_first, given_second = columns(first), columns(second)
    stretches: list[Stretch] = []
    add_columns(stretches, 0, given_first)
    add_columns(stretches, 0, given_second)
    add_columns(stretches, 1, given_second)
    assert stretches == [(0, columns(first + second)), (1, columns(second))]
    assert (given_first, given_second) == (columns(first), columns(second))


@given(rows_of_two)
def test_rows_and_columns_travel_as_what_they_are(rows):
    assert from_wire(unpack(pack(to_wire(rows)))) == rows
    assert from_wire(unpack(pack(to_wire(columns(rows))))) == columns(rows)


@given(st.lists(st.decimals()), st.lists(st.dates()))
def test_a_column_of_one_type_travels_as_one_text_and_arrives_the_same(numbers, days):
    for column in (numbers, days, [*numbers, *days, None]):
        made = from_wire(unpack(pack(to_wire(Columns([column[:]], len(column))))))
        assert list(map(repr, column_of(made, 0))) == list(map(repr, column))


@pytest.mark.parametrize(
    "wire",
    [
        {"count": 1, "columns": [{"decimals": "x"}]},
        {"count": 1, "columns": [{"dates": 5}]},
        {"count": 1, "columns": [{}]},
    ],
    ids=shown,
)
def test_columns_of_text_that_cannot_be_read_are_refused(wire):
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        from_wire(wire)


@pytest.mark.parametrize(
    "wire",
    [{"count": 2, "columns": [["a"]]}, {"count": 1, "columns": [["a"], []]}, {"count": 1}, 5, None, "ab", {"count": 0}],
    ids=shown,
)
def test_what_holds_no_rows_is_refused(wire):
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_wire(wire)
