"""Rows of CSV become tuples of exactly the columns and types that were asked for, or a reason that names the column."""

from __future__ import annotations

import csv
import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pytest

from coordinator.sources import BadRecordError
from coordinator.sources.records.csv_fields import CsvDialect, CsvFields
from state import TopologyError
from tests.support.approved import approved, refusals

ALL = {"i": int, "f": float, "d": Decimal, "t": dt.datetime, "b": bytes, "o": int | None}


def test_texts_become_the_types_that_were_asked_for() -> None:
    row = CsvFields(["t", "f", "i", "d", "b", "o"], ALL).row("2026-11-21,1e3,-7,0.10,é,\r".encode())
    assert row == [-7, 1000.0, Decimal("0.10"), dt.datetime.fromisoformat("2026-11-21"), "é".encode(), None]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (int, "1_000"),
        (int, " 1"),
        (int, "٣"),
        (int, '""'),
        (int | None, "x"),
        (float, "nan"),
        (float, "1e999"),
        (float, "1,5"),
        (Decimal, "NaN"),
        (dt.datetime, "now"),
        (bool, "1"),
    ],
)
def test_a_text_that_does_not_read_as_its_type_is_bad_and_named(kind: Any, text: str) -> None:
    with pytest.raises(BadRecordError, match=r"field 'f' is .*, which is not"):
        CsvFields(["f"], {"f": kind}, delimiter=";").row(text.encode())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"1", "it has 1 values, and there are 2 columns"),
        (b"1,2,3", "it has 3 values, and there are 2 columns"),
        (b'1,"2', "it is not a row of CSV: unexpected end of data"),
        (b'1,"2"3', "it is not a row of CSV: ',' expected after '\"'"),
        (b"1,\xff", "byte 0xff at position 2 is not valid UTF-8"),
        (b"1\r2,3", "it is not a row of CSV: new-line character seen in unquoted field, a carriage return; if"),
    ],
)
@pytest.mark.parametrize("neighbours", [0, 2])
def test_what_is_not_a_row_is_bad_alone_and_among_others(record: bytes, reason: str, neighbours: int) -> None:
    made = CsvFields(["a", "b"]).rows([b"x,y"] * neighbours + [record] + [b'"u",v'] * neighbours)
    assert [row for row in made if not isinstance(row, BadRecordError)] == [["x", "y"]] * neighbours + [
        ["u", "v"]
    ] * neighbours
    (bad,) = [row for row in made if isinstance(row, BadRecordError)]
    assert reason in str(bad)


def test_a_row_without_an_end_does_not_take_in_the_next() -> None:
    made = CsvFields(["a", "b"]).rows([b'1,"2', b'3",4', b"5,6"])
    assert [isinstance(row, BadRecordError) for row in made] == [True, False, False]


def test_every_dialect_of_the_csv_module_is_read() -> None:
    assert CsvFields(["a", "b"], dialect="excel-tab").row(b"1\t2") == ["1", "2"]
    assert CsvFields(["a", "b"], dialect=csv.unix_dialect).row(b'"1","2\n"') == ["1", "2\n"]
    assert CsvFields(["a", "b"], quoting=csv.QUOTE_NONE, escapechar="\\").row(b'"1\\,,2') == ['"1,', "2"]
    assert CsvFields(["a", "b"], delimiter=";", quotechar="'").row(b"';';2") == [";", "2"]


def test_a_format_pickles_with_its_dialect() -> None:
    arrived = pickle.loads(pickle.dumps(CsvFields(["a", "b"], {"b": int}, dialect="excel-tab")))
    assert arrived.rows([b"1\t2"]) == [[2]]


REFUSED = {
    "no column": lambda: CsvFields([]),
    "columns as a text": lambda: CsvFields("ab"),
    "a column twice": lambda: CsvFields(["a", "a"]),
    "a field that is no column": lambda: CsvFields(["a"], ["b"]),
    "an unknown dialect": lambda: CsvDialect("klingon"),
    "quoting that gives types": lambda: CsvDialect(quoting=csv.QUOTE_NONNUMERIC),
}


def test_what_cannot_be_read_is_refused_when_the_topology_is_built() -> None:
    approved(refusals(REFUSED, TopologyError), "csv-arguments")
    with pytest.raises(TopologyError, match="is refused by csv: "):  # in words that differ between versions of Python
        CsvDialect(delimiter=";;")


def test_rows_that_end_as_the_csv_module_writes_them_are_made_columns_of() -> None:
    fields = CsvFields(["a", "b"], {"a": int, "b": str})
    assert fields.make_columns([b"1,x\r", b'2,"y"\r', b"3,z"]) == [[1, 2, 3], ["x", "y", "z"]]
    assert fields.make_columns([b"1,x\r", b"2,y\rz"]) is None
