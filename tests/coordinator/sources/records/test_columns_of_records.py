"""Columns that are read at once are those of the records one by one, or none; random records of CSV and of JSON."""

from __future__ import annotations

import csv
import os
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from coordinator.sources.records import json_fields
from coordinator.sources.records.csv_fields import CsvFields
from coordinator.sources.records.json_fields import JsonFields
from coordinator.sources.records.record_format import BadRecordError, RecordFormat

TEXTS = int(os.environ.get("TXBATCH_CSV_TEXTS", "2000"))
KINDS = [int, float, Decimal, bool, bytes, date, datetime, str, int | None, Decimal | None, str | None]
NUMBERS = ["1", "-7", "+0", "007", "1.5", ".5", "1.", "1e3", "1e999", "9" * 30, "1_0", " 1", "\u0661", "nan", "0x1", ""]
OTHERS = [
    "",
    "true",
    "False",
    "2026-11-28",
    "2026-11-28T10:00:00Z",
    "2026-11-28T10:00:00.1234567",
    "é",
    'a"b',
    "\ud800",
]


def compared(form: RecordFormat, records: list[bytes]) -> bool:
    """Returns whether there were columns, which have to be those of the rows."""
    rows, columns = form.rows(records), form.make_columns(records)
    if columns is not None:
        assert not any(isinstance(row, BadRecordError) for row in rows), (records, rows)
        expected = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in form.fields]
        assert (columns, types_of(columns)) == (expected, types_of(expected)), records
    return columns is not None


def types_of(columns: list[list[Any]]) -> list[list[type]]:
    return [list(map(type, column)) for column in columns]


def test_columns_of_csv_are_those_of_its_rows() -> None:
    random, made = Random(TEXTS), 0
    for _ in range(TEXTS):
        kinds = random.choices(KINDS, k=random.randrange(1, 4))
        names = [f"f{place}" for place in range(len(kinds))]
        delimiter = random.choice(",;")
        form = CsvFields(
            names,
            dict(zip(names, kinds, strict=True)),
            delimiter=delimiter,
            skipinitialspace=random.random() < 0.1,
            escapechar=random.choice([None, None, None, "\\"]),
            quoting=random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_NONE]),
        )
        texts = random.choice(
            [NUMBERS[:3], NUMBERS, [*NUMBERS, *OTHERS, "x,y", " 1", "x" * 140_000, '"1"', '"1\n2"', '"1', "\\", "1\r"]]
        )
        end = random.choice(["", "\r"])
        rows = [delimiter.join(random.choices(texts, k=len(kinds))) + end for _ in range(random.randrange(5))]
        made += compared(form, [row.encode("utf-8", "surrogatepass") for row in rows])
    assert TEXTS // 40 < made < TEXTS


@pytest.mark.parametrize("parser", ["msgspec", "json"])
def test_columns_of_json_are_those_of_its_objects(parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if parser == "json":
        monkeypatch.setattr(json_fields, "_quick_decoder", lambda _: None)
    random, made = Random(TEXTS), 0
    values = [*NUMBERS[:2], "1.5", "1e3", "1e999", "9" * 30, "null", "true", '"a"', '"12:30"', '"\\":"', '"2026-11-28"']
    inner = ['{"a": 1}', '{"a": 1, "a": 2}', '{"f1": 1}', "[1]", '[{"a": []}]', "{", '"\\ud800"', '"é"', "NaN", "-0"]
    values += ['""', '"\\\\"', '"\\\\\\": 1"', "-0.0", "9" * 20, "17.4e-320", "1E+2", '"\\ud83d\\ude00"', '"1.50"']
    for _ in range(TEXTS):
        form = JsonFields({f"f{place}": random.choice(KINDS) for place in range(random.randrange(1, 3))})
        pool, records = random.choice([values[:2], values, [*values, *inner]]), []
        for _ in range(random.randrange(1, 5)):
            names = random.choice([["f0", "f1"], ["f0", "f1"], ["f0", "f1", "f0"], ["f1", "f0", "g"], ["f\\u0030"]])
            colon = random.choice([":", ":", ": ", " :", "\t: "])
            pairs = [f'"{name}"{colon}{random.choice(pool)}' for name in names]
            records.append(f"{{{', '.join(pairs)}}}".encode())
        made += compared(form, records)
    assert TEXTS // 40 < made < TEXTS
