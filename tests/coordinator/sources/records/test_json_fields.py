"""JSON becomes tuples of exactly the fields and types that were asked for, or a reason that names the field."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.sources import BadRecordError
from coordinator.sources.records.json_fields import JsonFields
from state import TopologyError
from state.codec import pack_exact
from tests.support.approved import approved, refusals

UTC = dt.UTC


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, b"12", 12),
        (int, b"-123456789012345678901234567890", -123456789012345678901234567890),
        (float, b"1.5", 1.5),
        (float, b"3", 3.0),
        (str, b'"a\\u00e9"', "aé"),
        (bool, b"true", True),
        (Decimal, b"0.10", Decimal("0.10")),
        (Decimal, b"7", Decimal(7)),
        (Decimal, b'"12.30"', Decimal("12.30")),
        (bytes, b'"AP8="', b"\0\xff"),
        (dt.datetime, b'"2026-11-21T10:00:00Z"', dt.datetime(2026, 11, 21, 10, tzinfo=UTC)),
        (dt.datetime, b'"2026-11-21 10:00"', dt.datetime.fromisoformat("2026-11-21T10:00")),
        (dt.datetime, b'"2026-11-25T08:00:00.123456000+00:00"', dt.datetime(2026, 11, 25, 8, 0, 0, 123456, tzinfo=UTC)),
        (dt.date, b'"2026-11-21"', dt.date(2026, 11, 21)),
        (int | None, b"null", None),
        (str | None, b'"x"', "x"),
    ],
)
def test_a_value_has_the_type_that_was_asked_for(kind: Any, text: bytes, value: Any) -> None:
    (found,) = JsonFields({"f": kind}).row(b'{"f": ' + text + b"}")
    assert found == value
    assert type(found) is type(value)
    pack_exact(found)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (int, b"true", "field 'f' is True of type bool, which is not int"),
        (int, b"1.0", "field 'f' is 1.0 of type float, which is not int"),
        (int, b'"1"', "field 'f' is '1' of type str, which is not int"),
        (int, b"null", "field 'f' is None of type NoneType, which is not int"),
        (float, b"true", "field 'f' is True of type bool, which is not float"),
        (float, b"1e999", "field 'f' is inf, which cannot be stored"),
        (float, b"1" * 400, "of type int, which is not float"),
        (str, b"1", "field 'f' is 1 of type int, which is not str"),
        (str, b'"\\ud800"', r"field 'f' is '\ud800', which cannot be stored"),
        (Decimal, b'"1_0"', "field 'f' is '1_0' of type str, which is not Decimal"),
        (Decimal, b"true", "field 'f' is True of type bool, which is not Decimal"),
        (Decimal, b"1e99999999999999999999", "holds the number 1e99999999999999999999, which Decimal cannot hold"),
        (bytes, b'"AP8"', "field 'f' is 'AP8' of type str, which is not bytes"),
        (dt.datetime, b"1700000000", "field 'f' is 1700000000 of type int, which is not datetime"),
        (dt.datetime, b'"today"', "field 'f' is 'today' of type str, which is not datetime"),
        (dt.datetime, b'"2026-11-25T08:00:00.123456789Z"', "which is not datetime: it is finer than microseconds"),
        (dt.datetime, b'"2026-11-25T08:00:00,0000000001"', "it is finer than microseconds, so take it as str"),
    ],
)
def test_a_value_of_another_type_is_bad_and_named(kind: Any, text: bytes, reason: str) -> None:
    with pytest.raises(BadRecordError) as caught:
        JsonFields({"f": kind}).row(b'{"f": ' + text + b"}")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", "it is not JSON"),
        (b'{"f": 1', "it is not JSON"),
        (b'{"f": 1} x', "it is not JSON"),
        (b"[1]", "it is a JSON value of type list, not an object; if the file is one JSON array, write its objects"),
        (b"[\n", "if the file is one JSON array, write its objects as lines first, for example with `jq"),
        (b'{"f": NaN}', "it holds NaN, which is not JSON"),
        (b'{"g": 1}', "field 'f' is missing"),
        (b'{"f": 1, "f": 2}', "it has the field 'f' twice in one object"),
        (b'{"f": 1, "g": [{"a": 1, "b": 2, "a": 1}]}', "it has the field 'a' twice in one object"),
        (b'{"f": 1, "\\u0066": 1}', "it has the field 'f' twice in one object"),
        (b'{"f": "\xff"}', "byte 0xff at position 7 is not valid UTF-8"),
        (b"[" * 100_000, "it is not JSON"),
        (b'{"f": ' + b"1" * 5000 + b"}", "it is not JSON"),
    ],
)
def test_what_is_not_an_object_with_the_field_is_bad(record: bytes, reason: str) -> None:
    with pytest.raises(BadRecordError, match=reason):
        JsonFields({"f": int}).row(record)


def test_fields_are_selected_in_order_and_a_dot_leads_into_an_object() -> None:
    fields = JsonFields({"order.price": Decimal, "user": str, "order.note": str | None})
    assert fields.fields == ("order.price", "user", "order.note")
    assert fields.row(b'{"user": "a", "order": {"price": 1.10, "more": 1}}') == [Decimal("1.10"), "a", None]
    with pytest.raises(BadRecordError, match=r"field 'order\.price' is missing"):
        fields.row(b'{"user": "a", "order": 3}')


@pytest.mark.parametrize(
    ("record", "value"),
    [
        (b'{"a.b.c": 1}', 1),
        (b'{"a": {"b": {"c": 1}}}', 1),
        (b'{"a.b": {"c": 1}}', 1),
        (b'{"a": {"b.c": 1}}', 1),
        (b'{"a": {"b": 2}, "a.b": {"c": 1}}', 1),
        (b'{"a": {"b": {"c": 2}}, "a.b.c": 1}', 1),
        (b'{"a": {"b": {"d": 2}}, "a.b": 1, "c": 3}', None),
    ],
)
def test_a_name_with_dots_is_a_field_called_so_or_one_within_others(record: bytes, value: int | None) -> None:
    fields = JsonFields({"a.b.c": int | None})
    assert fields.row(record) == [value]
    assert fields.make_columns([record, record]) == [[value, value]]


def test_names_alone_take_values_as_they_are() -> None:
    assert JsonFields(["a", "b"]).row(b'{"b": {"x": [1, null]}, "a": 0.5}') == [0.5, {"x": [1, None]}]
    with pytest.raises(BadRecordError, match="field 'b' is missing"):
        JsonFields(["a", "b"]).row(b'{"a": 1}')


def test_a_decimal_elsewhere_makes_no_decimals_of_untyped_numbers() -> None:
    fields = JsonFields({"a": Decimal, "b": None})
    (_, other) = fields.row(b'{"a": 0.1, "b": {"x": [0.5]}}')
    assert other == {"x": [0.5]}
    assert type(other["x"][0]) is float


def test_bad_records_take_their_places_among_many_and_a_format_pickles() -> None:
    fields = pickle.loads(pickle.dumps(JsonFields({"f": int})))
    first, second, third = fields.rows([b'{"f": 1}', b"{", b'{"f": 3}'])
    assert (first, third) == ([1], [3])
    assert isinstance(second, BadRecordError)


@pytest.mark.parametrize(
    "records",
    [
        [b'{"f": [1', b"2]}"],
        [b'{"f": [1', b"2]}", b'{"f": 3}, {"f": 4}'],
        [b'{"f": 1}, {"f": 2}'],
        [b'{"f": 1}', b""],
        [b'{"f": 1}', b"1"],
        [b"], [", b'{"f": 1}'],
    ],
)
def test_records_that_would_make_sense_only_together_make_no_columns(records: list[bytes]) -> None:
    fields = JsonFields(["f"])
    assert fields.make_columns(records) is None
    assert any(isinstance(row, BadRecordError) for row in fields.rows(records))


def test_a_record_may_hold_line_feeds_and_spaces_around_it() -> None:
    assert JsonFields(["f"]).make_columns([b'{"f":\n 1}', b' {"f": 2}\r\n']) == [[1, 2]]


_PIECES = st.sampled_from([b"{", b"}", b"[", b"]", b",", b":", b'"f"', b"1", b'{"f": 1}', b"\n", b" "])


@given(st.lists(st.lists(_PIECES, max_size=6).map(b"".join), min_size=1, max_size=4))
def test_columns_hold_what_the_rows_hold(records: list[bytes]) -> None:
    fields = JsonFields({"f": int})
    columns = fields.make_columns(records)
    assert columns is None or columns == [[row[0] for row in fields.rows(records)]]  # type: ignore[index]


REFUSED: dict[str, Any] = {
    "no field": {},
    "a text": "user",
    "a field twice": ["a", "a"],
    "no name": {"": int},
    "a type that is none": {"a": list},
    "two types": {"a": int | str},
}


def test_fields_that_cannot_be_are_refused() -> None:
    cases = {name: partial(JsonFields, fields) for name, fields in REFUSED.items()}
    approved(refusals(cases, TopologyError), "json-arguments")


@pytest.mark.parametrize("value", [b"1e400", b"-1e400", b'{"x": [1, {"y": 1e400}]}'])
@pytest.mark.parametrize("other", [int, Decimal])
def test_a_number_too_large_for_a_float_is_bad_without_a_type_too(value: bytes, other: type) -> None:
    with pytest.raises(BadRecordError, match=r"field 'f' is .*, which cannot be stored: a float has to be finite"):
        JsonFields({"f": None, "g": other}).row(b'{"g": 1, "f": ' + value + b"}")


@pytest.mark.parametrize("depth", [300, 700, 990])
def test_a_deeply_nested_value_without_a_type_is_a_tuple_or_a_bad_record(depth: int) -> None:
    (row,) = JsonFields(["f"]).rows([b'{"f": ' + b"[" * depth + b"]" * depth + b"}"])
    if not isinstance(row, BadRecordError):
        pack_exact(row)


values = st.sampled_from(
    [
        b"1",
        b"-2.5",
        b"true",
        b"null",
        b'"x"',
        b'"\\u00e9"',
        b'"\\ud800"',
        '"ö"'.encode(),
        b"[1]",
        b'{"b": 1}',
        b"NaN",
        b"x",
    ]
)
odd_lines = [b"", b" {}", b'{"a": 1} ', b'{"a": 1}{"a": 2}', b"[1]", b'{"a":', b"1}", b"\xff", b'{"a": 1,\n"b": 2}']
lines = st.builds(b'{"a": %s, "b": %s}'.__mod__, st.tuples(values, values)) | st.sampled_from(odd_lines)
plain_kinds = [{"a": int}, {"b": str, "a": int | None}, {"a": float | None, "b": None}, ["a"], {"a.b": int | None}]
wanted = st.sampled_from([*plain_kinds, {"a": Decimal}])


@given(st.lists(lines, max_size=4), wanted)
def test_columns_are_what_each_record_is_alone_or_are_left_to_that(records: list[bytes], fields: Any) -> None:
    form = JsonFields(fields)
    columns = form.make_columns(records)
    if columns is not None:
        alone = [list(row) for row in form.rows(records) if not isinstance(row, BadRecordError)]
        assert repr([list(row) for row in zip(*columns, strict=True)]) == repr(alone)  # types included


def test_plain_records_are_made_columns_of() -> None:
    form = JsonFields({"user": str, "n": int, "at.x": float})
    records = [b'{"user": "a", "n": 1, "at": {"x": 1}}', '{"n": 2, "at": {"x": 0.5}, "user": "ö"}'.encode()]
    assert form.make_columns(records) == [["a", "ö"], [1, 2], [1.0, 0.5]]
    assert form.make_columns([*records, b'{"user": "a", "n": "1", "at": {"x": 1}}']) is None


def test_a_subclass_with_rows_of_its_own_is_asked_for_them() -> None:
    class Doubled(JsonFields):
        def row(self, data: bytes) -> list[Any]:
            return [2 * value for value in super().row(data)]

    assert Doubled({"n": int}).make_columns([b'{"n": 1}']) is None
